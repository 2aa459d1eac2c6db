// How far a non-negative least-squares fit may be from the best one, rounding included.
//
// With r = b - A x, every u with A'u <= 0 proves f* >= <u, b> - 1/2 ||u||^2, and so
//
//     f(x) - f* <= sum_j x_j (-<a_j, u>) + 1/2 ||r - u||^2.
//
// Here u = q - v t. The vector q is the residual as computed, t has positive inner products with
// the atoms that q violates, and v is the least number with which no atom is violated. Everything
// that is computed on the way comes with a bound on its error: products with q and with t, and the
// distance ||r - q||. A proof counts the errors against itself: an atom needs
// <a, q> + error <= v (<a, t> - error), and the bound adds all errors up.
#pragma once

#include <algorithm>
#include <cmath>

#include "../shared/lanes.hpp"
#include "../shared/triangular.hpp"
#include "refinement.hpp"

namespace conepursuit {

// Share of ||b||^2 below which f(x) itself is a bound that says something; above, an estimate is
// returned where it is smaller.
constexpr double EXACT_SHARE = 1e-12;

// A slope of at most so many times its error is computed again in twice the precision.
constexpr double CLOSE_ROUNDINGS = 64.0;

// A bound on f(x) - f*, or an estimate of it.
struct Gap {
    double value;
    bool proven;
};

// The least v >= 0 with g <= v s for all that g and s may be; -1 if there is none.
inline double least_tilt(ConstVector g, ConstVector g_error, ConstVector s, ConstVector s_error) {
    double v = 0.0;
    for (Index j = 0; j < g.size(); j++) {
        double const need = g[j] + g_error[j];
        if (need <= 0.0) continue;
        double const firm = s[j] - s_error[j];
        if (!(firm > 0.0 && need < INFINITE)) return -1.0;
        v = std::max(v, need / firm);
    }
    v *= 1.0 + 8.0 * EPS;
    for (Index j = 0; j < g.size(); j++) {
        double const firm = s[j] - s_error[j];
        if (firm < 0.0 && g[j] + g_error[j] > (1.0 + 8.0 * EPS) * v * firm) return -1.0;
    }
    return v;
}

// The bound that u = q - v t proves for the least v; infinite if none does.
//
// g = A'q and s = A't as computed, with bounds on the errors of their entries; `length` and
// `distance` are upper bounds of ||t|| and of ||r - q||.
inline double tilted_gap(ConstVector g, ConstVector g_error, ConstVector s, ConstVector s_error,
                         ConstVector x, double length, double distance) {
    double const v = least_tilt(g, g_error, s, s_error);
    if (v < 0.0) return INFINITE;
    double total = 0.0, lost = 0.0;
    for (Index j = 0; j < g.size(); j++) {
        if (!(x[j] > 0.0)) continue;
        double const size = std::fabs(g[j]) + v * std::fabs(s[j]);
        total += x[j] * (v * (s[j] + s_error[j]) - g[j] + g_error[j] + 4.0 * EPS * size);
        lost += LOST;
    }
    double const way = distance + v * length;
    if (way > 0.0) total += 0.5 * way * way, lost += LOST;
    return total * (1.0 + product_rounding(g.size())) + lost;
}

// Return a bound on f(x) - f* that is proved, or else an estimate.
//
// `gap` is a proved bound, or infinite. As f* >= 0, f(x) is another. The smaller one is returned if
// it is `gap`, or if f(x) is at most the share EXACT_SHARE of ||b||^2. Otherwise the estimate
// |<r, A x>| + ||b|| max_j <a_j, r> / ||a_j|| is returned if it is less than f(x): the gain along
// the steepest atom on the way to a fit no longer than b. `length` is an upper bound of ||r||,
// `size` is ||b||.
inline Gap settled(double gap, ConstVector g, ConstVector norms, ConstVector x, double length,
                   double size) {
    double const value = (0.5 + 4.0 * EPS) * length * length + (length > 0.0 ? LOST : 0.0);
    if (gap < value || value <= EXACT_SHARE * size * size) return {std::min(gap, value), true};
    double steepest = 0.0, height = 0.0;
    for (Index j = 0; j < g.size(); j++) {
        if (norms[j] > 0.0) steepest = std::max(steepest, g[j] / norms[j]);
        height += x[j] * g[j];
    }
    double const guess = std::fabs(height) + steepest * size;
    return value <= guess ? Gap{value, true} : Gap{guess, false};
}

// Write <a, r> for the first k atoms in `order`, summed in 16 lanes, into their places in g.
//
// The error is at most that of `lane_rounding`.
inline void lane_slopes(ConstMatrix atoms, ConstPlaces order, Index k, ConstVector r, Vector g) {
    Index const m = r.size(), whole = m - m % SUM_LANES;
    const double *left = r.data();
    for (Index i = 0; i < k; i++) {
        const double *row = atoms[order[i]].data();
        double lanes[SUM_LANES] = {};
        for (Index start = 0; start < whole; start += SUM_LANES) {
#pragma omp simd
            for (Index p = 0; p < SUM_LANES; p++) {
                lanes[p] = fused(row[start + p], left[start + p], lanes[p]);
            }
        }
        for (Index p = 0; p < m - whole; p++) {
            lanes[p] = fused(row[whole + p], left[whole + p], lanes[p]);
        }
        for (Index p = 0; p < 8; p++) lanes[p] += lanes[p + 8];
        for (Index p = 0; p < 4; p++) lanes[p] += lanes[p + 4];
        g[order[i]] = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    }
}

// Compute the slopes that are close to zero again, in twice the precision.
//
// g is A'r, with errors of at most `g_error`; both are overwritten. `length` is an upper bound of
// ||r||, `inexact` one of the relative error of the entries of the atoms. `close` and `exact` are
// work space.
inline void double_slopes(ConstMatrix atoms, ConstVector r, ConstVector norms, double length,
                          double inexact, Vector g, Vector g_error, Places close, Vector exact) {
    Index k = 0;
    double const noise = (doubled_rounding(r.size()) + inexact) * length;
    for (Index j = 0; j < g.size(); j++) {
        if (std::fabs(g[j]) <= CLOSE_ROUNDINGS * g_error[j]) close[k++] = j;
    }
    accurate_slopes(atoms, close, k, r, exact);
    for (Index i = 0; i < k; i++) {
        Index const j = close[i];
        g[j] = exact[i];
        g_error[j] = 2.0 * UNIT * std::fabs(exact[i]) + noise * norms[j];
    }
}

// Write the t in the span of the first k atoms in `order` with <t, a> = ||a|| for each of them.
//
// C is the factor of their Gram matrix. t is only as accurate as C, so that proofs use its computed
// products with the atoms, not ||a||. `z` is work space.
inline void functional(ConstMatrix atoms, ConstVector norms, ConstPlaces order, Index k,
                       ConstMatrix C, Vector z, Vector t) {
    for (Index i = 0; i < k; i++) z[i] = norms[order[i]];
    forward_solve(C, k, z);
    backward_solve(C, k, z);
    t.fill(0.0);
    for (Index i = 0; i < k; i++) add_multiple(z[i], atoms[order[i]], t.size(), t);
}

// The proof of a fit of one target, and the memory that it needs.
class Certifier {
  public:
    Certifier(ConstMatrix atoms, ConstVector norms, ConstVector sums)
        : atoms_(atoms), norms_(norms), sums_(sums), g_error_(atoms.rows()), s_(atoms.rows()),
          s_error_(atoms.rows()), exact_(atoms.rows()), t_(atoms.columns()),
          close_(atoms.rows()) {}

    // Return a bound on f(x) - f*, or an estimate of it.
    //
    // The least of these bounds counts: that of the residual tilted along the vector of ones; that
    // of the residual tilted along the functional of the atoms with weight; and f(x), as f* >= 0.
    // If the first two are above the resolution, they are computed again from slopes in twice the
    // precision. The first k atoms in `order` are those with weight, C is the factor of their Gram
    // matrix; r is the residual as computed, at most `distance` from b - A x; g is A'r, of which
    // the slopes of atoms with weight are computed again; z is work space for k numbers.
    Gap certify(ConstVector b, ConstVector x, ConstPlaces order, Index k, ConstMatrix C,
                ConstVector r, double distance, double inexact, Vector g, Vector z) {
        Index const m = r.size(), n = g.size();
        double const size = std::sqrt(dot(b, b, m)), noise = product_rounding(m);
        double const length = (1.0 + noise) * std::sqrt(dot(r, r, m)) + FLOOR * size;
        double const enough = 0.5 * resolution(m) * size * size, ones = std::sqrt(double(m));
        lane_slopes(atoms_, order, k, r, g);
        for (Index j = 0; j < n; j++) g_error_[j] = noise * length * norms_[j];
        double const fine = std::min(lane_rounding(m), noise) * length;
        for (Index i = 0; i < k; i++) g_error_[order[i]] = fine * norms_[order[i]];
        double gap = along_ones(x, g, noise * ones, ones, distance);
        if (!(gap <= enough) && k > 0) {
            functional(atoms_, norms_, order, k, C, z, t_);
            gap = std::min(gap, along_functional(x, g, distance));
        }
        if (!(gap <= enough)) {
            double_slopes(atoms_, r, norms_, length, inexact, g, g_error_, close_, exact_);
            gap = std::min(gap, along_ones(x, g, noise * ones, ones, distance));
            if (k > 0) gap = std::min(gap, along_functional(x, g, distance));
        }
        return settled(gap, g, norms_, x, length + distance, size);
    }

  private:
    double along_ones(ConstVector x, ConstVector g, double error, double length, double distance) {
        for (Index j = 0; j < g.size(); j++) s_error_[j] = error * norms_[j];
        return tilted_gap(g, g_error_, sums_, s_error_, x, length, distance);
    }

    double along_functional(ConstVector x, ConstVector g, double distance) {
        Vector const t = t_;
        double const length = 1.01 * std::sqrt(dot(t, t, t.size()));
        if (!(length < INFINITE)) return INFINITE;
        multiply_all(atoms_, t, s_);
        double const error = product_rounding(t.size()) * length;
        for (Index j = 0; j < g.size(); j++) s_error_[j] = error * norms_[j];
        return tilted_gap(g, g_error_, s_, s_error_, x, length, distance);
    }

    ConstMatrix atoms_;
    ConstVector norms_, sums_;
    Buffer<double> g_error_, s_, s_error_, exact_, t_;
    Buffer<std::int64_t> close_;
};

}  // namespace conepursuit
