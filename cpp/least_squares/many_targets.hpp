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
struct Results {
    Matrix X, duals;
    Vector rnorms, gaps;
    Span<bool> proven;
    Places codes, counts;
};

// The dictionary: atoms as rows, with rows of zeros behind them that fill the lanes of a product;
// the Gram matrix, its rows padded with zeros; one over the norms of the atoms, and the sums of
// their entries.
struct Dictionary {
    ConstMatrix atoms, G;
    ConstVector inverse_norms, sums;
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
        }
    }

    // Fit and certify one target, and write row i of the results.
    void fit(ConstVector b, Index i, const Results &out) {
        multiply(given.atoms, b, n, m, set.c);
        finish(set.c, n);
        double const square = dot(b, b, m), size = std::sqrt(square);
        double const tolerance = expected_rounding(m) * 2.0 * size;
        Index steps = 0;
        Code const code = set.pursue(given.G, tolerance, limit, max_steps, steps);
        out.counts[i] = steps;
        for (Index j = 0; j < m; j++) r[j] = b[j];
        subtract_rows(given.atoms, set.order, set.x, set.k, padded(m), set.z, r);
        double const before = (1.0 + noise) * std::sqrt(dot(r, r, m)) + FLOOR * size;
        double reach = length(set.x);
        if (reach > CANCELLING * size) multiply(given.atoms, r, n, m, set.g);
        bool const positive = correct(ROUGH * size);
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
        write(i, out);
        out.rnorms[i] = std::sqrt(dot(r, r, m));
        double const distance = product_rounding(set.k) * (size + reach);
        slope_errors(size + reach, before + moved, distance);
        double const gap = bound(out.X[i], distance, 0.5 * resolution(m) * square);
        // What plain arithmetic does not prove, the kernel for one target may.
        doubtful |= code == OPTIMAL && !(gap <= 0.5 * resolution(m) * square);
        out.codes[i] = in_range(square, b) && !doubtful ? code : REDO;
        double const most = (1.0 + noise) * out.rnorms[i] + distance + moved;
        Gap const found = settled(gap, set.g.part(0, n), norms, out.X[i], most, size);
        out.gaps[i] = found.value, out.proven[i] = found.proven;
    }

  private:
    // sum_i |w_i| ||a_i|| over the passive atoms.
    double length(ConstVector weights) const {
        double total = 0.0;
        for (Index i = 0; i < set.k; i++) {
            total += std::fabs(weights[i]) / given.inverse_norms[set.order[i]];
        }
        return total;
    }

    // Correct the weights by the residual, and the slopes g with them; u receives the correction
    // and v the slopes of the passive atoms, which are taken from the residual. For the other
    // atoms, the Gram matrix will do. False if a weight is lost, or one changes, times the norm of
    // its atom, by more than `most`: then H is too rough for one correction.
    bool correct(double most) {
        Index const k = set.k;
        multiply_some(given.atoms, set.order, r, k, m, set.v);
        finish(set.v, k);
        multiply_symmetric(set.H, set.v, k, set.u);
        finish(set.u, k);
        bool positive = true;
        for (Index i = 0; i < k; i++) {
            Index const atom = set.order[i];
            set.g[atom] = set.v[i];
            set.x[i] += set.u[i];
            positive &= set.x[i] > 0.0;
            positive &= std::fabs(set.u[i]) <= most * given.inverse_norms[atom];
        }
        subtract_rows(given.G, set.order, set.u, k, given.G.columns(), set.z, set.g);
        return positive;
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

    // Write the weights and minus the slopes of one target.
    void write(Index i, const Results &out) const {
        Vector const x = out.X[i], dual = out.duals[i];
        for (Index j = 0; j < n; j++) x[j] = 0.0, dual[j] = -set.g[j];
        for (Index j = 0; j < set.k; j++) x[set.order[j]] = set.x[j];
    }

    // Write how far the slopes may be from those of the residual that they belong to.
    //
    // That is the computed residual less the correction of the weights times the atoms; `near`
    // bounds the sum of both norms. The slopes of the passive atoms come from it, up to products
    // with the Gram matrix for the correction. Those of the other atoms come from the Gram matrix,
    // of numbers that sum to at most `size`, and belong to the exact residual, at most `distance`
    // away.
    void slope_errors(double size, double near, double distance) {
        double const error = product_rounding(m + set.k);
        for (Index j = 0; j < n; j++) g_error[j] = norms[j] * (error * size + distance);
        for (Index i = 0; i < set.k; i++) {
            g_error[set.order[i]] = norms[set.order[i]] * error * near;
        }
    }

    // The bound along the ones or, if that is above `enough`, along the functional as well.
    double bound(ConstVector x, double distance, double enough) {
        ConstVector const g = set.g.part(0, n);
        double gap = tilted_gap(g, g_error, given.sums, s_error, x, std::sqrt(double(m)), distance);
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
    double noise;
};

// Fit and certify all targets.
inline void fit_targets(const Dictionary &given, const Targets &targets, Index limit,
                        Index max_steps, const Results &out) {
    ManyTargets many(given, targets.m, limit, max_steps);
    Buffer<double> space(targets.m);
    for (Index i = 0; i < targets.count; i++) many.fit(targets.get(i, space), i, out);
}

}  // namespace conepursuit
