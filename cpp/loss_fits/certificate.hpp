// How far a fit under one of the `losses.hpp` may be from the best one.
//
// With g_i = w_i l'(x_i), every u with <u, a> >= -penalty for each atom a, and u_i = 0 where
// w_i = 0, proves
//
//   F(c) - F* <= sum_i w_i (l(x_i) + l*(u_i / w_i) - u_i x_i / w_i) + <u, x> + penalty sum_j c_j.
//
// The points tried are u = s (g + k t), where t has positive inner products with the atoms that g
// violates, k is the least shift with which no atom is violated, and s keeps u in the domain of l*.
// With a penalty, a small enough s repairs all atoms without a shift. u = 0 is one more point: as
// no loss is negative, F(c) itself is a bound.
//
// As in least_squares/certificate.hpp, an atom counts as violated if it may be so by the rounding
// of its products. All other rounding is added to the bound at the end (`allowance`).
#pragma once

#include "../least_squares/certificate.hpp"
#include "../shared/triangular.hpp"
#include "divergences.hpp"
#include "fit.hpp"

namespace conepursuit::loss_fits {

// Share of the largest |g_i| up to which the slope of an entry is slight. Such entries count as
// separable: x goes to infinity there, and the dual point is set to 0. At other entries the dual
// point stays near g_i; see `settle_separable`.
constexpr double SLIGHT = 1e-8;

// How often the interval is halved in which the best s is sought, at most.
constexpr int HALVINGS = 30;

// A bound of F(c) - F*, whether it is proved up to the `allowance`, and a bound on the norms of g
// and of the dual points tried, which `allowance` needs. A gap that is not proved is an estimate.
struct Proof {
    double gap;
    bool proven;
    double size;
};

// What `bound` needs besides the fit: the shift k, <g, x> + penalty sum_j c_j as `slack`, and the
// second term of that as `cost`.
struct Dual {
    double shift, slack, cost;
};

// The norm of v.
inline double norm(ConstVector v) { return std::sqrt(dot(v, v, v.size())); }

// Write how far the computed products of the atoms with v may be from the exact ones.
//
// The rounding is bounded by the product of the norms. For the logistic loss it is bounded by the
// sum of |a_i v_i|, since slopes differ by many orders of magnitude there, and the product of the
// norms may be far too large for an atom that is zero where slopes are large.
inline void bound_products(const Problem &P, ConstVector v, Vector error) {
    Index const n = P.norms.size() - 1, m = v.size();
    double const length = norm(v);
    for (Index j = 0; j < n; j++) {
        double size = P.norms[j] * length;
        if (P.loss.code == LOGISTIC) {
            ConstVector const row = P.rows[j];
            size = 0.0;
            for (Index i = 0; i < m; i++) size += std::fabs(row[i] * v[i]);
        }
        error[j] = size * product_rounding(m);
    }
}

// Write t = diag(metric) A z with <t, a> = ||a|| for the k passive atoms of the last model.
inline void functional(const Problem &P, Fit &S, Index k) {
    for (Index i = 0; i < k; i++) S.z[i] = P.norms[S.members[S.order[i]]];
    forward_solve(S.C, k, S.z);
    backward_solve(S.C, k, S.z);
    S.t.span().fill(0.0);
    for (Index i = 0; i < k; i++) add_row(S.z[i], P.rows[S.members[S.order[i]]], S.t);
    for (Index j = 0; j < S.width; j++) S.t[j] *= S.metric[j];
}

// The least multiple of the tilt that violates none of the n atoms, whose `products` with the tilt
// are known; -1 if there is none.
inline double tilt_of(const Fit &S, Index n) {
    return least_tilt(S.descent.span().part(0, n), S.descent_error.span().part(0, n),
                      S.products.span().part(0, n), S.products_error.span().part(0, n));
}

// Write a t for which g + t is 0 at separable entries and violates no atom; return 1, or -1.
//
// Separable entries are those of slight slopes (`SLIGHT`). An atom that is zero at all others has
// the product 0 with g + t, exactly. At the other entries t is the least multiple of |g| with which
// no atom is violated: the share of |g| raises atom j by the sum of a_ij |g_i|, which for a signed
// atom is less than the sum of |a_ij g_i|, and may be negative. -1 is returned if no multiple does
// that, if it is not less than |g|, or if there is a penalty.
inline double settle_separable(const Problem &P, Fit &S) {
    if (P.penalty > 0.0) return -1.0;
    Index const n = P.norms.size() - 1;
    double const noise = product_rounding(S.width);
    double steepest = 0.0;
    for (Index i = 0; i < S.width; i++) steepest = std::max(steepest, std::fabs(S.g[i]));
    double const slight = SLIGHT * steepest;
    for (Index j = 0; j < n; j++) {
        ConstVector const row = P.rows[j];
        double slope = 0.0, raised = 0.0, size = 0.0;
        for (Index i = 0; i < S.width; i++) {
            if (std::fabs(S.g[i]) > slight) {
                slope += row[i] * S.g[i];
                raised += row[i] * std::fabs(S.g[i]);
                size += std::fabs(row[i] * S.g[i]);
            }
        }
        S.descent[j] = -slope;
        S.products[j] = raised;
        S.descent_error[j] = S.products_error[j] = noise * size;
    }
    double const share = tilt_of(S, n);
    if (!(share >= 0.0 && share < 1.0)) return -1.0;
    for (Index i = 0; i < S.width; i++) {
        double const size = std::fabs(S.g[i]);
        S.t[i] = size <= slight ? -S.g[i] : share * size;
    }
    return 1.0;
}

// Write a vector t, and return the least k >= 0 for which g + k t violates no atom; -1 if none.
//
// Attempt 0 is 1 for every entry with weight. For the logistic loss it is |g|, since its slopes may
// be as small as exp(-x), and the domain of its conjugate ends at 0. Attempt 1 is the `functional`
// of the passive atoms, attempt 2 is `settle_separable`.
inline double find_shift(const Problem &P, Fit &S, Index passive, int attempt) {
    if (attempt == 2) return settle_separable(P, S);
    Index const n = P.norms.size() - 1;
    if (attempt == 1) {
        functional(P, S, passive);
    } else {
        for (Index i = 0; i < S.width; i++) {
            double const weighted = S.w[i] > 0.0 ? 1.0 : 0.0;
            S.t[i] = P.loss.code == LOGISTIC ? std::fabs(S.g[i]) : weighted;
        }
    }
    multiply(P.rows, S.t, n, S.width, S.products);
    bound_products(P, S.t, S.products_error);
    return tilt_of(S, n);
}

// The bound of u = s (g + k t), where k is the shift.
inline double bound(const Problem &P, const Fit &S, Dual dual, double s) {
    double gap = 0.0, tilted = 0.0;
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0) {
            double const tangent = slope(P.loss, S.y[i], S.x[i]), tilt = dual.shift * S.t[i];
            double const v = s * (tangent + tilt / S.w[i]);
            double const change = (s - 1.0) * tangent + s * tilt / S.w[i];
            gap += S.w[i] * young(P.loss, S.y[i], S.x[i], v, change);
            tilted += tilt * S.x[i];
        }
    }
    return gap + s * (dual.slack + tilted) + (1.0 - s) * dual.cost;
}

// u_i / w_i for s = 1, at an entry with weight.
inline double tilted_slope(const Problem &P, const Fit &S, double shift, Index i) {
    return slope(P.loss, S.y[i], S.x[i]) + shift * S.t[i] / S.w[i];
}

// The derivative of the bound in s: <g + k t, z>, where w l'(z) = s (g + k t).
inline double steepness(const Problem &P, const Fit &S, double shift, double s) {
    double total = 0.0;
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0) {
            double const v = tilted_slope(P, S, shift, i);
            if (v != 0.0) total += S.w[i] * v * attained(P.loss, S.y[i], s * v);
        }
    }
    return total;
}

// The largest s for which u is in the domain of l*, less a little, so that rounding does not lead
// out of the domain.
inline double farthest(const Problem &P, const Fit &S, double shift) {
    double most = INFINITE;
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0) {
            double const v = tilted_slope(P, S, shift, i);
            most = std::min(most, reach(P.loss, S.y[i], S.x[i], v));
        }
    }
    return most * (1.0 - 4.0 * EPS);
}

// The bound for the largest s up to 1 or, if that is above `enough`, for the best s.
//
// The bound is convex in s, so that the best s is found by bisection of its derivative. Without a
// penalty s may be larger than 1. Infinity if no s > 0 is in the domain.
inline double best_bound(const Problem &P, const Fit &S, Dual dual, double enough) {
    double const most = farthest(P, S, dual.shift);
    if (!(most > 0.0)) return INFINITE;
    double s = std::min(most, 1.0), low = 0.0, high = s, best = bound(P, S, dual, s);
    if (best > enough && P.penalty == 0.0 && steepness(P, S, dual.shift, s) < 0.0) {
        low = s;
        high = std::min(most, 4.0 * s);
    }
    for (int halving = 0; halving < HALVINGS && !(best <= enough); halving++) {
        s = 0.5 * (low + high);
        best = std::min(best, bound(P, S, dual, s));
        (steepness(P, S, dual.shift, s) > 0.0 ? high : low) = s;
    }
    return best;
}

// An estimate of F(c) - F*, not a bound: |slack| + length * max_j -dual_j / ||a_j||.
//
// The second term is the gain along the steepest atom on the way to a fit of that length, which is
// the norm of x, or of the fit that the last model proposed if that is longer.
inline double estimate(const Problem &P, const Fit &S, double slack) {
    double steepest = 0.0;
    for (Index j = 0; j < P.norms.size() - 1; j++)
        if (S.dual[j] < 0.0) steepest = std::max(steepest, -S.dual[j] / P.norms[j]);
    double const farther = std::max(dot(S.x, S.x, S.width), dot(S.ahead, S.ahead, S.width));
    return std::fabs(slack) + steepest * std::sqrt(farther);
}

// Write minus the derivatives of F as `descent`, with their errors; return the largest violation,
// at least 0.
inline double find_violation(const Problem &P, Fit &S) {
    double violation = 0.0;
    bound_products(P, S.g, S.descent_error);
    for (Index j = 0; j < P.norms.size() - 1; j++) {
        S.descent[j] = -S.dual[j];
        S.descent_error[j] += 4.0 * EPS * P.penalty;
        violation = std::max(violation, S.descent[j] + S.descent_error[j]);
    }
    return violation;
}

// A bound of F(c) - F*, from x, g and the derivatives at c.
//
// `passive` is how many atoms the factor of the last model holds. `low` is an estimate of F(c) from
// below; F(c) is a bound as well, and computed only if `low` is at most `enough`, or in the last
// call. Once a bound is at most `enough`, no better one is sought. In the `last` call for a fit all
// proofs are tried. Before, a shift is tried only if an estimate says that its bound would be at
// most `enough`; if no bound is, the estimate is returned.
inline Proof certify(const Problem &P, Fit &S, Index passive, double low, double enough,
                     bool last) {
    double const slack = dot(S.c, S.dual, P.norms.size()), cost = paid(P, S.c);
    double size = norm(S.g), gap = INFINITE, hope = INFINITE;
    double const violation = find_violation(P, S);
    if (P.penalty > 0.0)
        gap = bound(P, S, {0.0, slack, cost}, P.penalty / (P.penalty + violation));
    int const attempts = P.loss.code == LOGISTIC && last ? 3 : 2;
    for (int attempt = 0; attempt < attempts; attempt++) {
        if (gap <= enough || (hope < INFINITE && !last)) break;
        double const shift = find_shift(P, S, passive, attempt);
        if (shift >= 0.0) {
            size = std::max(size, 4.0 * (size + shift * norm(S.t)));
            hope = slack + shift * dot(S.t, S.x, S.width);
            if (hope <= enough || last)
                gap = std::min(gap, best_bound(P, S, {shift, slack, cost}, enough));
        }
    }
    if (!(gap <= enough) && (last || low <= enough)) gap = std::min(gap, objective(P, S));
    if (!(gap <= enough) && (hope == INFINITE || !last)) {
        hope = std::min(hope, estimate(P, S, slack));
        if (hope < gap) return {hope, false, size};
    }
    return {std::max(gap, 0.0), true, size};
}

}  // namespace conepursuit::loss_fits
