// Where the fit of a target starts.
//
// Where F or its gradient is not finite at c = 0, a fit starts at a multiple of the sum of all
// atoms, or of a positive combination of them that a one-sided fit finds.
#pragma once

#include "fit.hpp"

namespace conepursuit::loss_fits {

// The least start, as a share of the best multiple without a penalty; see `scale`. Where the
// penalty asks for a smaller multiple, this one is taken.
constexpr double LEAST_SCALE = 1e-6;

// The least multiple that is taken: a smaller one may be 0, which is outside of a domain.
constexpr double LEAST_FACTOR = 1e-290;

// Newton steps for the best multiple; they converge from one side, to all digits.
constexpr int SCALE_STEPS = 50;

// The logarithm of the best multiple for a power b > 1, at least that of LEAST_SCALE.
//
// The root of f^(b-1) grown + cost = f^(b-2) shrunk in s = log f. The difference of the logarithms
// of the two sides is convex and increasing in s, so that Newton's method does not overshoot.
inline double best_logarithm(double power, double grown, double shrunk, double cost) {
    double s = std::log(shrunk / grown);
    double const least = s + std::log(LEAST_SCALE);
    for (int step = 0; step < SCALE_STEPS && cost > 0.0; step++) {
        double const rising = grown * std::exp((power - 1.0) * s);
        double const miss = std::log(rising + cost) - std::log(shrunk) + (2.0 - power) * s;
        s -= miss / ((power - 1.0) * rising / (rising + cost) + 2.0 - power);
    }
    return s > least ? s : least;
}

// Multiply c by the factor that minimises F and write x; false if x is not in the domain.
//
// With z the present fit, the factor f is the root of
// f^(b-1) sum w z^b + cost = f^(b-2) sum w y z^(b-1), where b = 1 for the Kullback-Leibler loss.
// For b > 1, f is at least `LEAST_SCALE` times the best factor without a penalty: from an x next to
// zero, Newton steps in c would take long to lead away.
inline bool scale(const Problem &P, Fit &S) {
    combine(P, S.c, S.x);
    if (!inside(P, S)) return false;
    double const power = P.loss.code == KULLBACK_LEIBLER ? 1.0 : P.loss.parameter;
    double const cost = paid(P, S.c);
    double grown = 0.0, shrunk = 0.0;
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0 && S.x[i] > 0.0) {
            grown += S.w[i] * std::pow(S.x[i], power);
            shrunk += S.w[i] * S.y[i] * std::pow(S.x[i], power - 1.0);
        }
    }
    double factor = shrunk / (grown + cost);
    if (power > 1.0) factor = std::exp(best_logarithm(power, grown, shrunk, cost));
    if (!(factor > LEAST_FACTOR)) factor = LEAST_FACTOR;
    for (Index j = 0; j < P.prices.size(); j++) S.c[j] *= factor;
    combine(P, S.c, S.x);
    return true;
}

// Start at 0 or at a multiple of the sum of all atoms; false if neither is in the domain.
inline bool begin(const Problem &P, Fit &S) {
    S.c.span().fill(0.0);
    S.x.span().fill(0.0);
    if (inside(P, S)) return true;
    S.c[P.norms.size() - 1] = 1.0;
    return scale(P, S);
}

// Set up a one-sided fit that looks for an x > 0; return its loss at c = 0.
//
// The loss is sum_i min(x_i - 1, 0)^2 / 2 over the entries with weight. If it is less than 1/2, all
// of these x_i are positive. If any combination of the atoms is positive there, a multiple of it
// has the loss 0.
inline double level(Fit &S) {
    double total = 0.0;
    S.c.span().fill(0.0);
    S.x.span().fill(0.0);
    S.y.span().fill(1.0);
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0) {
            S.w[i] = 1.0;
            total += 0.5;
        }
    }
    return total;
}

// Take the given weights if F is at most `start` there; return by how much it is less.
//
// Otherwise, or if all of them are zero, keep the present weights and return 0. x is then the fit
// of the weights.
inline double resume(const Problem &P, Fit &S, ConstVector given, double start) {
    Index const n = given.size();
    double total = 0.0;
    for (Index j = 0; j < n; j++) {
        S.v[j] = S.c[j];
        S.c[j] = given[j];
        total += given[j];
    }
    S.v[n] = S.c[n];
    S.c[n] = 0.0;
    combine(P, S.c, S.x);
    double const fall = total > 0.0 && inside(P, S) ? start - objective(P, S) : -1.0;
    if (fall >= 0.0) return fall;
    for (Index j = 0; j <= n; j++) S.c[j] = S.v[j];
    combine(P, S.c, S.x);
    return 0.0;
}

}  // namespace conepursuit::loss_fits
