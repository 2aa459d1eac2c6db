// How far losses are above their tangents, and their conjugates, for the dual bound.
//
// With the conjugate l* of a loss l of `losses.hpp`, two divergences are needed:
//
// - D(x, z) = l(x) - l(z) - l'(z) (x - z), how far l is above its tangent at z (Bregman);
// - l(x) + l*(v) - v x, zero where v = l'(x) (Fenchel and Young). It is D(x, z) where v = l'(z).
//
// Both are computed by formulas in which nothing cancels.
#pragma once

#include "losses.hpp"

namespace conepursuit::loss_fits {

// Above this distance of two logits nothing cancels in the difference of their losses, and D is
// computed as that difference; below, exp of the distance is a safe number.
constexpr double FAR_APART = 30.0;

// Newton steps that `beta_root` makes at most; where they are slow, each halves a bracket.
constexpr int ROOT_STEPS = 100;

// p log(p / q) + (1 - p) log((1 - p) / rest), where p = q + change and rest = 1 - q.
//
// It is q f(change / q) + rest f(-change / rest) with f(t) = (1 + t) log(1 + t) - t >= 0; infinite
// if p or 1 - p is negative by more than the rounding of q.
inline double relative_entropy(double q, double rest, double change) {
    double total = 0.0;
    for (int side = 0; side < 2; side++) {
        double const part = side == 0 ? q : rest, more = side == 0 ? change : -change;
        if (more != 0.0) {
            double const t = more / part;
            if (!(t >= -1.0 - 8.0 * EPS)) return INFINITE;
            double const ratio = 1.0 + t;
            if (t <= -1.0)
                total += part;
            else if (std::fabs(t) < 0.5)
                total -= part * ratio * power_remainder(-t / ratio, 1.0 / ratio, 0.0);
            else
                total += part * (ratio * std::log1p(t) - t);  // nothing cancels
        }
    }
    return total;
}

// D(x, z) for the logistic loss.
inline double logistic_divergence(double y, double x, double z) {
    double const a = y * (x - z);
    if (std::fabs(a) > FAR_APART) return softplus(-y * x) - softplus(-y * z) + sigmoid(-y * z) * a;
    double const q = sigmoid(-y * x), rest = sigmoid(y * x), odds = std::expm1(a);
    return relative_entropy(q, rest, q * rest * odds / (1.0 + q * odds));
}

// D(x, z) = l(x) - l(z) - l'(z) (x - z) for x and z in the domain.
inline double divergence(Loss l, double y, double x, double z) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED: return 0.5 * square(x - z);
    case LOGISTIC: return logistic_divergence(y, x, z);
    case KULLBACK_LEIBLER:
        return y + p > 0.0
                   ? -(y + p) * power_remainder((x - z) / (z + p), (x + p) / (z + p), 0.0)
                   : 0.0;
    case HUBER: return clipped_young(std::fabs(x - y) - p, slope(l, y, z) - slope(l, y, x));
    case ONE_SIDED: return clipped_young(x - y, slope(l, y, z) - slope(l, y, x));
    default: break;
    }
    return beta_divergence(p, y, x, z);
}

// The root s of exp((b - 1) s) - exp((b - 2) s) = level by guarded Newton steps; 1 < b < 2.
//
// The left side increases with s and is 0 at s = 0. Its second term is below 1 for s > 0, and its
// first one for s < 0, which gives the bracket to start from.
inline double beta_root(double power, double level) {
    double low = std::min(0.0, -std::log1p(std::max(-level, 0.0)) / (2.0 - power));
    double high = std::max(0.0, std::log1p(std::max(level, 0.0)) / (power - 1.0));
    double s = std::min(std::max(level, low), high);
    for (int step = 0; step < ROOT_STEPS; step++) {
        double const grown = std::exp((power - 1.0) * s), shrunk = std::exp((power - 2.0) * s);
        double const miss = grown - shrunk - level;
        (miss > 0.0 ? high : low) = s;
        double const move = miss / ((power - 1.0) * grown + (2.0 - power) * shrunk);
        if (std::fabs(move) <= 4.0 * EPS * std::fabs(s) || miss == 0.0) break;
        s = low < s - move && s - move < high ? s - move : 0.5 * (low + high);
    }
    return s;
}

// The x at which v x - l(x) is largest, which is the slope of l* at v; v in the domain of l*.
//
// l'(x) = v there, except where x is the end of the domain.
inline double attained(Loss l, double y, double v) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED:
    case HUBER:
    case ONE_SIDED: return y + v;
    case LOGISTIC: return y * std::log((1.0 + y * v) / (-y * v));
    case KULLBACK_LEIBLER: return (y + p > 0.0 ? (y + p) / (1.0 - v) : 0.0) - p;
    default: break;
    }
    if (y == 0.0) return std::pow(std::max(v, 0.0), 1.0 / (p - 1.0));
    return y * std::exp(beta_root(p, v / std::pow(y, p - 1.0)));
}

// l(x) + l*(v) - v x for the loss of Kullback and Leibler, where v = l'(x) + change.
//
// It is Y (h - log(1 + h)) with 1 + h = X (1 - v) / Y. Where v is far from l'(x), 1 + h may be next
// to 0, and is not made from `change`, in which the digits of v may be lost.
inline double kullback_leibler_young(double Y, double X, double v, double change) {
    if (Y == 0.0) return change <= 0.0 ? -X * change : INFINITE;
    double h = -change * X / Y;
    double const ratio = std::fabs(h) < 0.5 ? 1.0 + h : X * (1.0 - v) / Y;
    if (!(std::fabs(h) < 0.5)) h = ratio - 1.0;
    return ratio > 0.0 ? -Y * power_remainder(h, ratio, 0.0) : INFINITE;
}

// l(x) + l*(v) - v x for the beta loss.
//
// If y = 0 and v < 0, l* is attained at the end of the domain, z = 0, where the slope of l is 0 and
// not v: then the divergence from z lacks -v x.
inline double beta_young(double power, double y, double x, double v) {
    double const rise = beta_divergence(power, y, x, attained({BETA, power}, y, v));
    return y == 0.0 ? rise + std::max(-v, 0.0) * x : rise;
}

// l(x) + l*(v) - v x; infinity outside the domain of l*.
//
// `change` is v - l'(x), which may be known to more digits than v.
inline double young(Loss l, double y, double x, double v, double change) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED: return 0.5 * square(change);
    case LOGISTIC: return relative_entropy(sigmoid(-y * x), sigmoid(y * x), -y * change);
    case KULLBACK_LEIBLER: return kullback_leibler_young(y + p, x + p, v, change);
    case HUBER:
        return std::fabs(v) > p ? INFINITE : clipped_young(std::fabs(x - y) - p, change);
    case ONE_SIDED: return v <= 0.0 ? clipped_young(x - y, change) : INFINITE;
    default: break;
    }
    return beta_young(p, y, x, v);
}

// The largest s for which s v is in the domain of l*, and not too near an open end.
inline double reach(Loss l, double y, double x, double v) {
    double const p = l.parameter;
    if (l.code == LOGISTIC) {
        double const odds = -y * v;
        if (odds > 0.0) return 1.0 / odds;
        return odds >= -4.0 * EPS * sigmoid(-y * x) ? INFINITE : 0.0;
    }
    if (l.code == HUBER) return p / std::fabs(v);
    if (l.code == ONE_SIDED) return v <= 0.0 ? INFINITE : 0.0;
    if (l.code == KULLBACK_LEIBLER && v > 0.0)
        return y + p > 0.0 ? std::max(1.0 - 0.5 * (y + p) / (x + p), 0.5) / v : 1.0 / v;
    return INFINITE;
}

}  // namespace conepursuit::loss_fits
