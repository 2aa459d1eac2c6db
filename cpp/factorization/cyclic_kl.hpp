// The cyclic coordinate descent of Hsieh and Dhillon [1], a baseline of the experiment `kl`.
//
// For data X of shape (rows, cols) and G fixed it lowers, over F >= 0, the divergence
//
//     sum_ij x_ij log(x_ij / (F'G)_ij) - x_ij + (F'G)_ij.
//
// [1] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
// non-negative matrix factorization. International Conference on Knowledge Discovery and Data
// Mining, 2011.
#pragma once

#include "greedy.hpp"

namespace conepursuit::factorization::cyclic {

// sum_j x_j a_j / z_j and sum_j x_j (a_j / z_j)^2 for some fit z.
struct Pull {
    double pull, curvature;
};

// The sums for the fit after a step along the atom; a fit below `floor` is set to it.
inline Pull kl_pull(ConstVector x, ConstVector fit, ConstVector atom, double step, double floor) {
    const double *const p = x.data(), *const z = fit.data(), *const a = atom.data();
    double pull = 0.0, curvature = 0.0;
#pragma omp simd reduction(+ : pull, curvature)
    for (Index j = 0; j < x.size(); j++) {
        double const ratio = a[j] / std::max(fused(step, a[j], z[j]), floor);
        pull = fused(p[j], ratio, pull);
        curvature = fused(p[j] * ratio, ratio, curvature);
    }
    return {pull, curvature};
}

// Newton's step along an atom of sum `total`, or a multiplicative one if that might raise the
// divergence.
//
// The slope is concave along the atom, so that a step up ends short of the minimum. A step down may
// go past it, to a point where the slope is `beyond`. The divergence falls by at least
// (slope + beyond) / 2 times the length of the step; if that is negative, the step is replaced.
inline double kl_step(ConstVector x, ConstVector fit, ConstVector atom, double total, double weight,
                      double floor) {
    if (total == 0.0) return 0.0;
    Pull const at = kl_pull(x, fit, atom, 0.0, floor);
    double const slope = total - at.pull;
    double const step =
        at.curvature > SMALLEST ? std::max(-slope / at.curvature, -weight) : -weight;
    if (step < 0.0) {
        double const beyond = total - kl_pull(x, fit, atom, step, floor).pull;
        if (slope + beyond < 0.0) return weight * (at.pull / total) - weight;
    }
    return step;
}

// Make one Newton step along each entry of F in turn, in place; the divergence never rises.
//
// X has the shape (rows, cols), F and G have (k, rows) and (k, cols); all are non-negative. `floor`
// is positive; a smaller fit is set to it, so that nothing is divided by zero.
inline void cyclic_kl_sweep(ConstMatrix X, Matrix F, ConstMatrix G, double floor) {
    Index const k = G.rows(), rows = X.rows(), cols = X.columns();
    Table<double> weights(rows, k), fits(rows, cols);
    Buffer<double> totals(k);
    transpose(F, weights);
    sum_rows(G, totals);
    multiply(weights, Panels(k, cols).pack(G), fits);
    for (Index i = 0; i < rows; i++) {
        for (Index r = 0; r < k; r++) {
            double const step = kl_step(X[i], fits[i], G[r], totals[r], F(r, i), floor);
            if (step != 0.0) {
                F(r, i) += step;
                add_multiple(step, G[r], cols, fits[i]);
            }
        }
    }
}

}  // namespace conepursuit::factorization::cyclic
