// Losses of one entry, and what Newton's method asks of them.
//
//   loss               l(x, y)                                      parameter
//   SQUARED            (x - y)^2 / 2                                none
//   LOGISTIC           log(1 + exp(-y x)), y = +-1                  none
//   KULLBACK_LEIBLER   Y log(Y / X) - Y + X; X = x + e, Y = y + e   e >= 0
//   HUBER              r^2 / 2, beyond d: d |r| - d^2 / 2; r = x-y  d > 0
//   BETA               (y^b + (b-1) x^b - b y x^(b-1)) / (b (b-1))  1 < b < 2
//   ONE_SIDED          min(x - y, 0)^2 / 2                          none
//
// Their domain is X > 0, or X >= 0 where Y = 0, for KULLBACK_LEIBLER; x > 0, or x >= 0 where y = 0,
// for BETA; and all x for the others.
//
// All are non-negative, with infimum 0; the last serves to find a start in a domain. They are
// computed by formulas in which nothing cancels, with
//
//   power_remainder(h, p) = ((1 + h)^p - 1) / p - h,   and log(1 + h) - h in the limit p = 0.
//
// Divisions by zero give infinities or NaN, which the callers expect.
#pragma once

#include <algorithm>
#include <cmath>

#include "../shared/arithmetic.hpp"
#include "../shared/constants.hpp"

namespace conepursuit::loss_fits {

// Which of the losses it is, and its parameter; 0 where it has none.
struct Loss {
    LossCode code;
    double parameter;
};

// Below this |h| `power_remainder` is a power series, of which 12 terms reach full precision.
// Above, it is computed by its formula, in which few digits cancel.
constexpr double SERIES = 0.05;

inline double square(double a) { return a * a; }

// ((1 + h)^p - 1) / p - h, or log(1 + h) - h if p = 0, to full relative precision; h >= -1.
//
// `ratio` is 1 + h, whose digits are lost in h where it is next to 0.
inline double power_remainder(double h, double ratio, double power) {
    if (std::fabs(h) < SERIES) {
        double term = h, total = 0.0;
        for (int i = 2; i < 14; i++) {
            term *= h * (power - i + 1.0) / i;
            total += term;
        }
        return total;
    }
    double const grown = std::fabs(h) < 0.5 ? std::log1p(h) : std::log(ratio);
    return (power == 0.0 ? grown : std::expm1(power * grown) / power) - h;
}

// 1 / (1 + exp(-x)), to full relative precision also where it is small.
inline double sigmoid(double x) {
    double const small = std::exp(-std::fabs(x));
    return (x >= 0.0 ? 1.0 : small) / (1.0 + small);
}

// log(1 + exp(x)); nothing overflows.
inline double softplus(double x) {
    return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0);
}

// What `young` does for a loss that is a parabola up to a point and linear after it.
//
// x is `beyond` that point by this distance, which is negative on the parabola.
inline double clipped_young(double beyond, double change) {
    return std::fabs(change) * std::max(beyond, 0.0) + 0.5 * square(change);
}

// How far the beta loss at x is above its tangent at z; z may be 0 if y is.
inline double beta_divergence(double power, double y, double x, double z) {
    if (z == 0.0) return std::pow(x, power) / power;
    double const h = (x - z) / z, ratio = x / z;
    double rise = std::pow(z, power) * power_remainder(h, ratio, power);
    if (y > 0.0) rise -= y * std::pow(z, power - 1.0) * power_remainder(h, ratio, power - 1.0);
    return rise;
}

// l'(x), for x in the domain.
inline double slope(Loss l, double y, double x) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED: return x - y;
    case LOGISTIC: return -y * sigmoid(-y * x);
    case KULLBACK_LEIBLER: return y + p > 0.0 ? (x - y) / (x + p) : 1.0;
    case HUBER: return std::min(std::max(x - y, -p), p);
    case ONE_SIDED: return std::min(x - y, 0.0);
    default: break;
    }
    return y == 0.0 ? std::pow(x, p - 1.0) : std::pow(x, p - 2.0) * (x - y);
}

// The loss of Kullback and Leibler for X and Y; infinity outside the domain.
inline double kullback_leibler(double Y, double X) {
    if (Y == 0.0) return X >= 0.0 ? X : INFINITE;
    if (X < 0.5 * Y) return X > 0.0 ? X - Y - Y * std::log(X / Y) : INFINITE;
    return -Y * power_remainder((X - Y) / Y, X / Y, 0.0);
}

// l(x, y); infinity outside the domain.
inline double loss(Loss l, double y, double x) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED: return 0.5 * square(x - y);
    case LOGISTIC: return softplus(-y * x);
    case HUBER: return clipped_young(std::fabs(x - y) - p, -slope(l, y, x));
    case ONE_SIDED: return 0.5 * square(std::min(x - y, 0.0));
    case KULLBACK_LEIBLER: return kullback_leibler(y + p, x + p);
    default: break;
    }
    return x >= 0.0 ? beta_divergence(p, y, x, y) : INFINITE;
}

// The sum of the absolute values of the terms of l, for x in the domain.
//
// The rounding of l is a few units in the last place of this sum, even where the terms cancel.
inline double size(Loss l, double y, double x) {
    double const p = l.parameter;
    if (l.code == LOGISTIC) return softplus(-y * x) + sigmoid(-y * x) * std::fabs(x);
    if (l.code == KULLBACK_LEIBLER) return x + y + 2.0 * p;
    double const span = std::fabs(x) + std::fabs(y);
    if (l.code == BETA) return std::pow(span, p) / (p * (p - 1.0));
    return span * (l.code == HUBER ? std::min(span, p) : span);
}

// The distance of x from the end of the domain; x is outside if that is not positive.
//
// It is infinite where the domain has no end, and at an end that belongs to the domain.
inline double margin(Loss l, double y, double x) {
    double const p = l.parameter;
    if (l.code == KULLBACK_LEIBLER) return x + p != 0.0 || y + p > 0.0 ? x + p : INFINITE;
    if (l.code == BETA) return x != 0.0 || y > 0.0 ? x : INFINITE;
    return INFINITE;
}

// l''(x), for x in the domain.
inline double curvature(Loss l, double y, double x) {
    double const p = l.parameter;
    switch (l.code) {
    case SQUARED: return 1.0;
    case LOGISTIC: return sigmoid(x) * sigmoid(-x);
    case KULLBACK_LEIBLER: return y + p > 0.0 ? (y + p) / square(x + p) : 0.0;
    case HUBER: return std::fabs(x - y) <= p ? 1.0 : 0.0;
    case ONE_SIDED: return x < y ? 1.0 : 0.0;
    default: break;
    }
    double const tangent = p - 1.0 + (y > 0.0 ? (2.0 - p) * y / x : 0.0);
    return tangent * std::pow(x, p - 2.0);
}

// The curvature l'(x) / (x - z), where z minimises l.
//
// The parabola with this curvature that touches l at x has its least value at z. The logistic loss
// has no minimiser; tanh(x / 2) / (2 x) is returned, the curvature of the lowest parabola above it
// that touches it at x.
inline double chord(Loss l, double y, double x) {
    double const p = l.parameter;
    switch (l.code) {
    case LOGISTIC: return x != 0.0 ? 0.5 * std::tanh(0.5 * x) / x : 0.25;
    case KULLBACK_LEIBLER: return 1.0 / (x + p);
    case HUBER: return std::min(1.0, p / std::fabs(x - y));
    case BETA: return std::pow(x, p - 2.0);
    default: break;
    }
    return 1.0;
}

}  // namespace conepursuit::loss_fits
