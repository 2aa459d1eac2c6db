// The sweeps of the non-negative garrote; `garrote.hpp` says what they minimise.
#pragma once

#include "garrote.hpp"

namespace conepursuit::factorization::garrote {

// Sweep until the limits are reached.
//
// `refresh(b)` computes the pull from scratch and returns the norm of its rounding;
// `shift(b, score)` moves the intercept and returns whether it could; `sweep()` moves all weights c
// and returns the largest violation met. `level` is ||p|| at the origin. The violations of all
// atoms are computed only if those met are small.
template <class Refresh, class Shift, class Sweep>
Outcome repeat(const Problem &P, const Limits &limits, double level, Vector c, double b,
               const State &S, const Refresh &refresh, const Shift &shift, const Sweep &sweep) {
    double allowed = std::max(limits.tol * level, refresh(b));
    if (violation(P, S.norms, c, S.pull) <= allowed) return {b, 0, true};
    for (Index count = 1; count <= limits.max_sweeps; count++) {
        double met = 0.0;
        if (P.intercept) {
            double const score = -sum(S.pull);
            met = shift(b, score) ? std::abs(score) / std::sqrt(double(P.samples())) : 0.0;
        }
        met = std::max(met, sweep());
        allowed = std::max(limits.tol * level, refresh(b));
        if (met <= allowed && violation(P, S.norms, c, S.pull) <= allowed) return {b, count, true};
    }
    return {b, limits.max_sweeps, false};
}

// Minimise F for l(x, y) = log(1 + exp(-x y)) and labels y of +1 or -1, changing c in place, from
// c >= 0 and b.
//
// With r_i = y_i (b + <z_i, c>) and D_j the trust region of c_j, the curvature of F along c_j is,
// within the region, at most sum_i w_i z_ij^2 B(r_i, D_j |z_ij|) with
//
//     B(r, d) = 1/4 if |r| <= d, otherwise 1 / (2 + exp(|r| - d) + exp(d - |r|)).
//
// A step minimises the quadratic model with this curvature over the region and c_j >= 0, so that F
// never rises; then D_j becomes max(2 |step|, D_j / 2) [2]. The intercept is one more coordinate,
// without bound and penalty, which each sweep begins with.
inline Outcome logistic_sweeps(const Problem &P, Vector c, double b, const Limits &limits) {
    State const S(P.features(), P.samples());
    measure(P, c, S.norms);
    first_radii(P.atoms, S.radii);
    double radius = 1.0;
    double const level = 0.5 * std::sqrt(dot(P.weights, P.weights, P.samples()));
    auto const refresh = [&](double at) { return logistic_pull(P, c, at, S); };
    auto const shift = [&](double &at, double score) {
        double const step = trusted_step(S.ones, P.weights, S.margins, score, radius);
        if (step != 0.0) {
            at += step;
            radius = std::max(2.0 * std::abs(step), 0.5 * radius);
            logistic_move(P, S.ones, step, S);
        }
        return true;
    };
    auto const move = [&](Index j, double score) {
        double const wanted = trusted_step(P.atoms[j], P.weights, S.margins, score, S.radii[j]);
        double const step = std::max(wanted, -c[j]);
        if (step != 0.0) {
            c[j] += step;
            S.radii[j] = std::max(2.0 * std::abs(step), 0.5 * S.radii[j]);
            logistic_move(P, P.atoms[j], step, S);
        }
    };
    auto const sweep = [&] { return visit(P, S, c, move); };
    return repeat(P, limits, level, c, b, S, refresh, shift, sweep);
}

// Minimise F for l(x, y) = (x - y)^2 / 2, changing c in place; otherwise as `logistic_sweeps`.
//
// Each step minimises F over its coordinate exactly.
inline Outcome squared_sweeps(const Problem &P, Vector c, double b, const Limits &limits) {
    State const S(P.features(), P.samples());
    measure(P, c, S.norms);
    squared_curvatures(P, S.curvatures);
    double const total = sum(P.weights), level = squared_level(P);
    auto const refresh = [&](double at) { return squared_pull(P, c, at, S); };
    auto const shift = [&](double &at, double score) {
        if (!(total > 0.0)) return false;
        at -= score / total;
        squared_move(S.ones, P.weights, -score / total, S.pull);
        return true;
    };
    auto const move = [&](Index j, double score) {
        // Without curvature the atom is zero at all samples with weight: its score is the penalty.
        double const bend = S.curvatures[j];
        double const step = bend > 0.0 ? std::max(-score / bend, -c[j]) : -c[j];
        c[j] += step;
        squared_move(P.atoms[j], P.weights, step, S.pull);
    };
    auto const sweep = [&] { return visit(P, S, c, move); };
    return repeat(P, limits, level, c, b, S, refresh, shift, sweep);
}

}  // namespace conepursuit::factorization::garrote
