// Sums that run in vector registers, and the constants of rounding.
//
// The compiler may not reorder or fuse anything by itself (-ffp-contract=off): sums say so with
// `omp simd reduction`, and products that may be fused with a sum say so with `fused`.
#pragma once

#include <cmath>
#include <limits>

#include "registers.hpp"

namespace conepursuit {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double EPS = 0x1p-52;   // the distance from 1 to the next number
constexpr double UNIT = 0x1p-53;  // the largest relative error of one operation
constexpr double FLOOR = 0x1p-60;  // share of ||b|| that is added to a norm, so that none is 0
constexpr double LOST = 0x1p-1074;  // no product loses more to underflow
constexpr Index SUM_LANES = 16;   // partial sums of `lane_slopes`

// The inner product of the first k entries.
//
// It has four registers of partial sums, which hides the time that one operation takes.
inline double dot(ConstVector a, ConstVector b, Index k) {
    check(k, a.size() + 1);
    check(k, b.size() + 1);
    const double *p = a.data(), *q = b.data();
    Register sums[4] = {};
    Index i = 0;
    for (; i + 4 * LANES_EACH <= k; i += 4 * LANES_EACH) {
        each<4>([&](Index l) {
            sums[l] = fused(load_register(p + i + l * LANES_EACH),
                            load_register(q + i + l * LANES_EACH), sums[l]);
        });
    }
    for (; i + LANES_EACH <= k; i += LANES_EACH) {
        sums[0] = fused(load_register(p + i), load_register(q + i), sums[0]);
    }
    double rest = 0.0;
    for (; i < k; i++) rest = fused(p[i], q[i], rest);
    return total((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

// y += weight * x, over the first k entries.
inline void add_multiple(double weight, ConstVector x, Index k, Vector y) {
    check(k, x.size() + 1);
    check(k, y.size() + 1);
    const double *p = x.data();
    double *q = y.data();
#pragma omp simd
    for (Index i = 0; i < k; i++) q[i] = fused(weight, p[i], q[i]);
}

// The functions of conepursuit/rounding.py, which explains them.
inline double product_rounding(Index m) { return 1.02 * UNIT * double(m + 8); }
inline double lane_rounding(Index m) { return 1.02 * UNIT * double(m / SUM_LANES + 14); }
inline double resolution(Index m) { return 261.0 * UNIT * double(m + 8); }
inline double expected_rounding(Index m) { return 2.0 * UNIT * (16.0 + std::sqrt(double(m))); }
inline double doubled_rounding(Index m) {
    double const plain = 1.02 * UNIT * double(m + 8);
    return plain * plain;
}

}  // namespace conepursuit
