// How far a bound that was computed in double precision may be below the exact one.
#pragma once

#include "fit.hpp"

namespace conepursuit::loss_fits {

// Share of its distance to the end of the domain up to which an entry of x may be wrong. Within it,
// the curvature of the loss on the way to the exact x is at most 1.4 times that at the computed x;
// beyond it, nothing is known of the loss at the exact x.
constexpr double NEAR_SHARE = 0.1, NEAR_CURVATURE = 1.4;

// Where y = 0 the beta loss x^b / b differs from its tangent at x by at most this times
// max(x, drift)^(b - 2) drift^2, for every step of at most `drift` that stays at or above 0.
constexpr double ZERO_CURVATURE = 4.0;

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
    if (code == BETA && S.y[i] == 0.0)
        return ZERO_CURVATURE * std::pow(std::max(S.x[i], drift), P.loss.parameter - 2.0);
    if (!(drift <= NEAR_SHARE * margin(P.loss, S.y[i], S.x[i]))) return INFINITE;
    return NEAR_CURVATURE * curvature(P.loss, S.y[i], std::max(S.x[i], drift));
}

// How far a `bound` may be below the exact one; `size` bounds the norms of the gradient and of the
// dual point.
//
// Each entry of the computed x differs from the exact one by at most the rounding of a sum of
// |c_j a_j|. That changes <u, x> by u times the difference, and the loss, beyond its tangent, by
// half its curvature times the square of it. The allowance is infinite if the difference is not
// small against the distance to the end of the domain. <u, x> is the sum of the weights times the
// slopes of their atoms, each of which is wrong by the rounding of a product. The terms of the bound
// are not negative, so that their own rounding is a share of it.
inline double allowance(const Problem &P, Fit &S, double size, double bound) {
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
    double const reach = dot(S.c, P.norms, n);
    total += size * (product_rounding(m) * reach + 3.0 * std::sqrt(away));
    total += 2.0 * product_rounding(m) * bound;
    return total + 2.0 * rounding(P, S) + 4.0 * EPS * double(n) * paid(P, S.c);
}

}  // namespace conepursuit::loss_fits
