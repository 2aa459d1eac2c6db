// Non-negative least squares of many targets on one dictionary, one target after the other.
//
// Every target starts afresh, so that neither the order of the targets nor the number of threads
// changes a bit of the result. The weights that `InverseSet` finds are corrected once by the
// residual. A target for which that does not suffice gets the code REDO, and its caller fits it by
// `fit_target`.
#pragma once

#include <cmath>

#include "active_set.hpp"
#include "certificate.hpp"
#include "inverse.hpp"
#include "sums.hpp"

namespace conepursuit {

// Share of ||r||^2: a correction of the weights that lowers it by more is made to r as well. The
// effect of a smaller correction on r is ignored.
constexpr double VISIBLE = 1e-13;

// Share of ||b|| by which a correction may change a weight times the norm of its atom. The error
// that is left is about the square of that share. A larger correction is not trusted.
constexpr double ROUGH = 1e-6;

// Ratio of sum_i x_i ||a_i|| to ||b|| above which all slopes are computed from the residual. Below,
// those of atoms without weight come from the Gram matrix, in which not much cancels.
constexpr double CANCELLING = 16.0;

// Share of the most that weights may sum to: if they exceed it by more without that condition, the
// fit with it starts afresh.
constexpr double MUCH_LARGER = 0.25;

// Many targets of m entries, as they lie in memory: `across` numbers from one target to the next,
// and `along` numbers from one entry of a target to the next. One of the two is 1.
struct Targets {
    // Target i, copied into `space` unless its entries lie one after the other.
    ConstVector get(Index i, Vector space) const {
        check(i, count);
        const double *from = data + i * across;
        if (along == 1) return {from, m};
        for (Index j = 0; j < m; j++) space[j] = from[j * along];
        return space;
    }

    const double *data;
    Index count, m, across, along;
};

// Where the results of many targets are written, a row for each.
//
// The multipliers, of the sum of weights, are written where that is given.
struct Results {
    Matrix X, duals;
    Vector rnorms, gaps;
    Span<bool> proven;
    Places codes, counts;
    Vector multipliers;
};

// The dictionary: atoms as rows, with rows of zeros behind them that fill the lanes of a product;
// the Gram matrix, its rows padded with zeros; one over the norms of the atoms, and the sums of
// their entries. Where the sum of weights is s, the Gram matrix and the squares of these norms are
// raised by a constant (sums.hpp). Where it is at most s, the constant is zero.
struct Dictionary {
    ConstMatrix atoms, G;
    ConstVector inverse_norms, sums;
    WeightSum sum;
    double raised;
};

class ManyTargets {
  public:
    ManyTargets(const Dictionary &given, Index m, Index limit, Index max_steps)
        : given(given), n(given.inverse_norms.size()), m(m), limit(limit), max_steps(max_steps),
          set(n), of_rows_(2, padded(m)), of_atoms_(4, n), r(of_rows_[0]), t(of_rows_[1]),
          norms(of_atoms_[0]), g_error(of_atoms_[1]), s_error(of_atoms_[2]), other(of_atoms_[3]),
          noise(product_rounding(m)) {
        for (Index j = 0; j < n; j++) {
            set.full[j] = given.inverse_norms[j];
            norms[j] = given.inverse_norms[j] > 0.0 ? 1.0 / given.inverse_norms[j] : 0.0;
            s_error[j] = noise * std::sqrt(double(m)) * norms[j];
            longest = std::max(longest, norms[j]);
        }
    }

    // Fit and certify one target, and write row i of the results.
    void fit(ConstVector b, Index i, const Results &out) {
        multiply(given.atoms, b, n, m, set.c);
        double const raised = given.raised;
        for (Index j = 0; j < n; j++) set.c[j] += raised * given.sum.s;
        finish(set.c, n);
        double const square = dot(b, b, m);
        double const size = std::sqrt(square) + std::sqrt(raised) * given.sum.s;
        Index steps = 0;
        Code const code = pursue(size, steps);
        double const s = set.s;  // zero unless the sum of these weights is to be s
        bool const full = s > 0.0;
        out.counts[i] = steps;
        for (Index j = 0; j < m; j++) r[j] = b[j];
        subtract_rows(given.atoms, set.order, set.x, set.k, padded(m), set.z, r);
        double const lack = full ? missing(set.x.part(0, set.k), s) : 0.0;
        double const before = (1.0 + noise) * std::sqrt(dot(r, r, m)) +
                              std::sqrt(raised) * std::fabs(lack) + FLOOR * size;
        double reach = length(set.x);
        if (reach > CANCELLING * size) {
            multiply(given.atoms, r, n, m, set.g);
            for (Index j = 0; j < n; j++) set.g[j] += raised * lack - set.mu;
        }
        bool const positive = correct(ROUGH * size, lack);
        double const moved = length(set.u);
        reach += moved;
        if (dot(set.u, set.v, set.k) > VISIBLE * dot(r, r, m)) {  // the fall of ||r||^2
            subtract_rows(given.atoms, set.order, set.u, set.k, padded(m), set.z, r);
        }
        finish(set.g, n);
        bool const level = holds(LEVEL_ROUNDINGS * tolerance);
        bool const steep = set.price(set.g, set.full) > DESCENT_ROUNDINGS * tolerance;
        bool doubtful = code == STALLED || (code == OPTIMAL && steep) || !level;
        doubtful = !positive || (doubtful && code != MAX_STEPS);
        Vector const weights = set.x.part(0, set.k);
        double const closed = full ? std::fabs(close_sum(weights, s)) : 0.0;
        doubtful |= given.sum.at_most && !full && missing(weights, given.sum.s) < 0.0;
        write(i, out);
        out.rnorms[i] = std::sqrt(dot(r, r, m));
        double const distance = product_rounding(set.k) * (size + reach) + closed * longest;
        slope_errors(size + reach, before + moved, distance, closed);
        double const scale =
            full ? sum_scale(std::sqrt(square), unraised_length(), s * longest) : square;
        double const enough = 0.5 * resolution(m) * scale;
        double const gap = bound(out.X[i], distance, enough);
        // What plain arithmetic does not prove, the kernel for one target may.
        doubtful |= code == OPTIMAL && !(gap <= enough);
        out.codes[i] = in_range(square, b) && !doubtful ? code : REDO;
        double const most = (1.0 + noise) * out.rnorms[i] + distance + moved;
        Gap const found = given.sum.given()
                              ? Gap{std::min(gap, (0.5 + 4.0 * EPS) * most * most), true}
                              : settled(gap, set.g.part(0, n), norms, out.X[i], most, size);
        out.gaps[i] = found.value, out.proven[i] = found.proven;
    }

  private:
    // Find the weights of a target from c, which is no longer than `size`, and add up the steps.
    //
    // Where their sum may be less than s, that is asked for only if it is larger without; if it is
    // much larger, a new start takes fewer steps than leaving atom by atom.
    Code pursue(double size, Index &steps) {
        const WeightSum &sum = given.sum;
        bool const at_once = sum.given() && !sum.at_most;
        tolerance = expected_rounding(m) * (size + (at_once ? sum.s * longest : size));
        set.begin();
        if (at_once) {
            set.begin_with_sum(given.G, sum.s);
            steps++;
        }
        Code const code = set.pursue(given.G, tolerance, limit, max_steps, steps);
        if (!sum.at_most) return code;
        double const lack = missing(set.x.part(0, set.k), sum.s);
        if (!(lack < 0.0)) return code;
        if (-lack > MUCH_LARGER * sum.s) {
            set.begin();
            set.begin_with_sum(given.G, sum.s);
            steps++;
        } else {
            steps += set.reduce_sum(sum.s);
        }
        return set.pursue(given.G, tolerance, limit, max_steps, steps);
    }

    // sum_i |w_i| ||a_i|| over the passive atoms.
    double length(ConstVector weights) const {
        double total = 0.0;
        for (Index i = 0; i < set.k; i++) {
            total += std::fabs(weights[i]) / given.inverse_norms[set.order[i]];
        }
        return total;
    }

    // sum_i x_i ||a_i|| over the passive atoms, with norms that are not raised.
    double unraised_length() const {
        double total = 0.0;
        for (Index i = 0; i < set.k; i++) {
            double const length = norms[set.order[i]];
            total += set.x[i] * std::sqrt(std::max(length * length - given.raised, 0.0));
        }
        return total;
    }

    // Correct the weights by the residual, and the slopes g with them; u receives the correction
    // and v the slopes of the passive atoms, which are taken from the residual. For the other
    // atoms, the Gram matrix will do. False if a weight is lost, or one changes, times the norm of
    // its atom, by more than `most`: then H is too rough for one correction. Where a sum is given,
    // the correction sums to `lack`, which the weights lack of it, and mu is corrected as well.
    bool correct(double most, double lack) {
        Index const k = set.k;
        multiply_some(given.atoms, set.order, r, k, m, set.v);
        for (Index i = 0; i < k; i++) set.v[i] += given.raised * lack - set.mu;
        finish(set.v, k);
        multiply_symmetric(set.H, set.v, k, set.u);
        finish(set.u, k);
        double const level = set.s > 0.0 ? close_correction(lack) : 0.0;
        bool positive = true;
        for (Index i = 0; i < k; i++) {
            Index const atom = set.order[i];
            set.g[atom] = set.v[i];
            set.x[i] += set.u[i];
            positive &= set.x[i] > 0.0;
            positive &= std::fabs(set.u[i]) <= most * given.inverse_norms[atom];
        }
        subtract_rows(given.G, set.order, set.u, k, given.G.columns(), set.z, set.g);
        for (Index j = 0; j < n; j++) set.g[j] -= level;
        return positive;
    }

    // Make the correction u one that sums to `lack`, and return the change of mu.
    double close_correction(double lack) {
        double whole = -lack, share = 0.0;
        for (Index i = 0; i < set.k; i++) whole += set.u[i], share += set.w[i];
        double const change = whole / share;
        for (Index i = 0; i < set.k; i++) set.u[i] -= change * set.w[i];
        set.mu += change;
        return change;
    }

    // Whether the slopes of the passive atoms are zero up to the tolerance.
    bool holds(double tolerance) const {
        double steepest = 0.0;
        for (Index i = 0; i < set.k; i++) {
            Index const atom = set.order[i];
            steepest = std::max(steepest, std::fabs(set.g[atom]) * given.inverse_norms[atom]);
        }
        return steepest <= tolerance;
    }

    // Write the weights of one target and minus its slopes, less mu where a sum is given.
    void write(Index i, const Results &out) const {
        Vector const x = out.X[i], dual = out.duals[i];
        for (Index j = 0; j < n; j++) x[j] = 0.0, dual[j] = -set.g[j];
        for (Index j = 0; j < set.k; j++) x[set.order[j]] = set.x[j];
        if (!given.sum.given()) return;
        out.multipliers[i] = given.sum.at_most ? std::max(set.mu, 0.0) : set.mu;
    }

    // Write how far the slopes may be from those of the residual that they belong to.
    //
    // That is the computed residual less the correction of the weights times the atoms; `near`
    // bounds the sum of both norms. The slopes of the passive atoms come from it, up to products
    // with the Gram matrix for the correction. Those of the other atoms come from the Gram matrix,
    // of numbers that sum to at most `size`, and belong to the exact residual, at most `distance`
    // away. All were reduced by mu where a sum is given. They are then those of the raised problem,
    // which differ from those of the data by the constant times what the weights lacked of the sum
    // before `closed` was added.
    void slope_errors(double size, double near, double distance, double closed) {
        double const error = product_rounding(m + set.k);
        double const level = 2.0 * (error * std::fabs(set.mu) + given.raised * closed);
        for (Index j = 0; j < n; j++) g_error[j] = norms[j] * (error * size + distance) + level;
        for (Index i = 0; i < set.k; i++) {
            g_error[set.order[i]] = norms[set.order[i]] * error * near + level;
        }
    }

    // The bound of a given sum, `sum_gap`. Unless the sum is s, also the bound along the ones and,
    // if none is below `enough`, along the functional.
    double bound(ConstVector x, double distance, double enough) {
        ConstVector const g = set.g.part(0, n);
        double gap = INFINITE;
        if (given.sum.given()) gap = sum_gap(g, g_error, set.mu, x, given.sum, distance);
        if (gap <= enough || set.s > 0.0) return gap;
        gap = std::min(gap, tilted_gap(g, g_error, given.sums, s_error, x, std::sqrt(double(m)),
                                       distance));
        if (gap <= enough || set.k == 0) return gap;
        functional();
        multiply(given.atoms, t, n, m, set.u);
        double const span = 1.01 * std::sqrt(dot(t, t, m));
        if (!(span < INFINITE)) return gap;
        for (Index j = 0; j < n; j++) other[j] = noise * span * norms[j];
        return std::min(gap, tilted_gap(g, g_error, set.u.part(0, n), other, x, span, distance));
    }

    // Write the t in the span of the passive atoms with <t, a> = ||a||; as in `certificate`.
    void functional() {
        Index const k = set.k;
        for (Index i = 0; i < k; i++) set.v[i] = -1.0 / given.inverse_norms[set.order[i]];
        finish(set.v, k);
        multiply_symmetric(set.H, set.v, k, set.u);
        finish(set.u, k);
        t.fill(0.0);
        subtract_rows(given.atoms, set.order, set.u, k, padded(m), set.z, t);
    }

    const Dictionary &given;
    Index n, m, limit, max_steps;
    InverseSet set;
    Table<double> of_rows_, of_atoms_;
    Vector r, t, norms, g_error, s_error, other;
    double noise, longest = 0.0, tolerance = 0.0;
};

// Fit and certify all targets.
inline void fit_targets(const Dictionary &given, const Targets &targets, Index limit,
                        Index max_steps, const Results &out) {
    ManyTargets many(given, targets.m, limit, max_steps);
    Buffer<double> space(targets.m);
    for (Index i = 0; i < targets.count; i++) many.fit(targets.get(i, space), i, out);
}

}  // namespace conepursuit
