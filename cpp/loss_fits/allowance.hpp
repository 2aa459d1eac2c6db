// How far a bound that was computed in double precision may be below the exact one.
#pragma once

#include "fit.hpp"

namespace conepursuit::loss_fits {

// Share of its distance to the end of the domain up to which an entry of x may be wrong. Within it,
// the curvature of the loss on the way to the exact x is at most 1.4 times that at the computed x;
// beyond it, nothing is known of the loss at the exact x.
constexpr double NEAR_SHARE = 0.1, NEAR_CURVATURE = 1.4;

// Write |A| c as `spread`.
inline void spread_weights(const Problem &P, Fit &S) {
    Vector const spread = S.spread;
    spread.fill(0.0);
    for (Index j = 0; j < P.norms.size(); j++) {
        if (S.c[j] == 0.0) continue;
        const double *row = P.rows[j].data();
        double *out = spread.data();
        double const weight = S.c[j];
        Index const m = S.width;
#pragma omp simd
        for (Index i = 0; i < m; i++) out[i] += weight * std::fabs(row[i]);
    }
}

// A bound on half the curvature of the loss between x_i and a number that is at most `drift` away.
inline double most_bent(const Problem &P, const Fit &S, Index i, double drift) {
    LossCode const code = P.loss.code;
    if (!(code == KULLBACK_LEIBLER || code == BETA) || !(drift > 0.0)) return 1.0;
    if (!(drift <= NEAR_SHARE * margin(P.loss, S.y[i], S.x[i]))) return INFINITE;
    return NEAR_CURVATURE * curvature(P.loss, S.y[i], std::max(S.x[i], drift));
}

// How far a bound may be below the exact one; `size` bounds the norms of the gradient and of the
// dual point.
//
// Each entry of the computed x differs from the exact one by at most the rounding of a sum of
// |c_j a_j|. That changes <u, x> by u times the difference, and the loss, beyond its tangent, by
// half its curvature times the square of it. The allowance is infinite if the difference is not
// small against the distance to the end of the domain.
inline double allowance(const Problem &P, Fit &S, double size) {
    Index const n = P.norms.size(), m = S.width;
    double const noise = product_rounding(n);
    double total = 0.0, away = 0.0;
    spread_weights(P, S);
    for (Index i = 0; i < m; i++) {
        if (S.w[i] > 0.0) {
            double const drift = noise * S.spread[i];
            away += square(drift);
            total += S.w[i] * most_bent(P, S, i, drift) * square(drift);
        }
    }
    double const length = std::sqrt(dot(S.x, S.x, m));
    total += size * (product_rounding(m) * length + 3.0 * std::sqrt(away));
    return total + 2.0 * rounding(P, S) + 4.0 * EPS * double(n) * paid(P, S.c);
}

}  // namespace conepursuit::loss_fits
