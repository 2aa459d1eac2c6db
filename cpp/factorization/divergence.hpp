// Multiplicative steps for non-negative factors under the divergence of Kullback and Leibler.
//
// For X of m x n entries with weights M, a factor F of k x m and the other, G, of k x n, with
// z = F'G,
//
//     f = sum_ij M_ij (x_ij log(x_ij / z_ij) - x_ij + z_ij) + sum_ri (l1 F_ri + l2 F_ri^2 / 2).
//
// With the shares p_r = F_ri G_rj / z_ij at the present F, Jensen's inequality bounds -log z_ij at
// any other F by -sum_r p_r log(F_ri G_rj / p_r). The multiplicative step minimises this bound, so
// that f never rises. Two cases need another step:
//
// - An entry of F that is zero is not moved by a multiplicative step, and one next to zero hardly,
//   even if f falls as it grows. It takes a step of Newton's method by itself, which ends short of
//   the minimum, since f'' falls (`release`).
// - Where f is infinite in a row of X, all entries of F for that row are raised (`lift`).
//
// All thresholds are relative, so that the scales of X, F and G do not matter. This file has the
// steps of one row; `divergence_updates.hpp` has those of a factor.
#pragma once

#include <bit>

#include "product.hpp"

namespace conepursuit::factorization::divergence {

// Numbers below this are next to the smallest that float64 holds to full precision.
//
// Where z / x is not above it, x / z counts as infinite, so that sums do not overflow. An entry of
// F that a step makes smaller becomes 0, since arithmetic on subnormal numbers is slow. Where z
// itself is smaller and x is positive, `diverge` computes the row by `diverge_slowly`.
constexpr double NEGLIGIBLE = 1e-290;

// Share of the sum of a row of X up to which an entry of F is next to zero.
//
// What counts is the entry times its price (see `grow`). Entries next to zero are moved by
// `release` if f falls as they grow; larger ones move by multiplicative steps alone.
constexpr double TRAPPED = 1e-9;

// Relative excess of its pull over its price above which `release` moves an entry next to zero.
// With less, it takes multiplicative steps alone. `grow` says what pull and price are.
constexpr double SLACK = 1e-7;

constexpr double LOG_2 = 0x1.62e42fefa39efp-1;

// Overwrite z with x / z, or with 0 where that is infinite; return the sum of x over these.
//
// `NEGLIGIBLE` says when a quotient counts as infinite. Where x = 0 it is 0, whatever z is.
inline double divide(ConstVector x, Vector z) {
    const double *const p = x.data();
    double *const q = z.data();
    double lost = 0.0;
#pragma omp simd reduction(+ : lost)
    for (Index j = 0; j < x.size(); j++) {
        bool const finite = q[j] > NEGLIGIBLE * p[j];
        lost += finite ? 0.0 : p[j];
        q[j] = p[j] / (finite ? q[j] : INFINITE);  // no branch around the division
    }
    return lost;
}

// What `diverge` returns, also where z is 0 or subnormal, by the library's logarithm.
inline double diverge_slowly(ConstVector x, ConstVector z, ConstVector m) {
    double total = 0.0;
    for (Index j = 0; j < x.size(); j++) {
        double const weight = m.empty() ? 1.0 : m[j];
        if (weight > 0.0) {
            double const entropy = x[j] > 0.0 ? x[j] * (std::log(x[j]) - std::log(z[j])) : 0.0;
            total += weight * (entropy - x[j] + z[j]);
        }
    }
    return total;
}

// 2 artanh s - 2 s, by a power series in q = s^2; |s| is at most about 0.172.
inline double odd_series(double s) {
    double const q = s * s;
    double series = fused(q, fused(q, fused(q, 2.0 / 23.0, 2.0 / 21.0), 2.0 / 19.0), 2.0 / 17.0);
    series = fused(q, fused(q, fused(q, series, 2.0 / 15.0), 2.0 / 13.0), 2.0 / 11.0);
    series = fused(q, fused(q, fused(q, series, 2.0 / 9.0), 2.0 / 7.0), 2.0 / 5.0);
    return s * q * fused(q, series, 2.0 / 3.0);
}

// x log(x / z) - x + z, for z that is not subnormal, and z where x = 0.
//
// Let e be the integer for which y = 2^e x is close to z, and s = (z - y) / (z + y). Then
// log(z / x) = e log 2 + 2 artanh s, where artanh is a power series. If e = 0,
// z - x - 2 x s = (z - x) s, and nothing cancels. The library's logarithm does not run in vector
// registers; this one does. e is taken from the bits of z and x, read as integers, which are about
// linear in their logarithms. `shifted` is e + 2048; put into the bits of 2^52, it becomes a double
// without an instruction that converts. Where x = 0, all this is done for x = z = 1, which adds 0
// to z. Choices are made between numbers that are there anyway, so that there are no branches.
inline double divergence_term(double given_x, double given_z) {
    bool const inside = given_x > 0.0;
    double const x = inside ? given_x : 1.0, z = inside ? given_z : 1.0;
    constexpr std::uint64_t HALF = std::uint64_t(1) << 51, SIGN = std::uint64_t(1) << 63;
    constexpr std::uint64_t BIG = std::uint64_t(0x433) << 52;  // the bits of 2^52
    std::uint64_t const from_x = std::bit_cast<std::uint64_t>(x);
    std::uint64_t const from_z = std::bit_cast<std::uint64_t>(z);
    std::uint64_t const shifted = (from_z - from_x + HALF + SIGN) >> 52;
    double const e = std::bit_cast<double>(shifted | BIG) - (0x1p52 + 2048.0);
    double const y = std::bit_cast<double>(from_x + (shifted << 52) - SIGN);
    double const s = (z - y) / (z + y), rest = odd_series(s), gap = z - x;
    double const far = e == 0.0 ? 0.0 : 1.0, share = e == 0.0 ? s : 1.0;
    double const logarithm = fused(far, fused(e, LOG_2, 2.0 * s), rest);
    return fused(gap, share, -x * logarithm) + (inside ? 0.0 : given_z);
}

// The sum of m (x log(x / z) - x + z); without weights, m is empty.
inline double diverge(ConstVector x, ConstVector z, ConstVector m) {
    const double *const p = x.data(), *const q = z.data(), *const weights = m.data();
    Index const n = x.size();
    double total = 0.0;
    std::int64_t odd = 0;  // bits of subnormals are not linear
    if (m.empty()) {
#pragma omp simd reduction(+ : total, odd)
        for (Index j = 0; j < n; j++) {
            odd += (p[j] > 0.0) & (q[j] < NEGLIGIBLE);
            total += divergence_term(p[j], q[j]);
        }
    } else {
#pragma omp simd reduction(+ : total, odd)
        for (Index j = 0; j < n; j++) {
            odd += (p[j] > 0.0) & (q[j] < NEGLIGIBLE);
            total = fused(weights[j], divergence_term(p[j], q[j]), total);
        }
    }
    return odd > 0 ? diverge_slowly(x, z, m) : total;
}

// Make the multiplicative step of f, a row of F'; return whether an entry is trapped at zero.
//
// The derivative of the objective by an entry is price + l2 f - pull: the price is the sum of its
// component plus l1, the pull the sum of its component times x / z, both with the weights of the
// entries. An entry is trapped if it is next to zero (`TRAPPED`) and its pull exceeds its price
// (`SLACK`). It stays as it is if price and l2 are 0, or the step is not finite.
inline bool grow(Vector f, ConstVector pull, ConstVector price, double l2) {
    bool trapped = false;
    double const mass = dot(f, pull, f.size());  // the sum of x where x / z is finite
    for (Index r = 0; r < f.size(); r++) {
        double root = price[r];
        if (l2 > 0.0) root = std::hypot(root, 2.0 * std::sqrt(l2 * pull[r] * f[r]));
        double const step = root > 0.0 ? 2.0 * pull[r] / (price[r] + root) : 0.0;
        trapped |= f[r] * price[r] <= TRAPPED * mass && pull[r] > (1.0 + SLACK) * price[r];
        double const grown = f[r] * step;
        if (grown < INFINITE && (root > 0.0 || l2 > 0.0)) f[r] = grown >= NEGLIGIBLE ? grown : 0.0;
    }
    return trapped;
}

// First and second derivative of the sum of x log z along one component, with the signs of f.
struct Slopes {
    double pull, bend;
};

// The sums of x s and x s^2 with s = g / z, or 0 where x / z counts as infinite.
inline Slopes slopes_along(ConstVector x, ConstVector g, ConstVector z) {
    const double *const p = x.data(), *const a = g.data(), *const q = z.data();
    double pull = 0.0, bend = 0.0;
#pragma omp simd reduction(+ : pull, bend)
    for (Index j = 0; j < x.size(); j++) {
        double const slope = a[j] / (q[j] > NEGLIGIBLE * p[j] ? q[j] : INFINITE);
        pull = fused(p[j], slope, pull);
        bend = fused(p[j] * slope, slope, bend);
    }
    return {pull, bend};
}

// Raise the entries of f that are next to zero and should grow, one after the other.
//
// Each takes one step of Newton's method. The derivative of the objective by one entry is concave,
// so that a step upward ends short of the minimum. z is work space.
inline void release(ConstVector x, ConstMatrix G, Vector f, ConstVector price, double l2,
                    Vector z) {
    Index const n = x.size();
    double const mass = sum(x);
    z.part(0, n).fill(0.0);
    for (Index r = 0; r < f.size(); r++) add_multiple(f[r], G[r], n, z);
    for (Index r = 0; r < f.size(); r++) {
        if (!(f[r] * price[r] <= TRAPPED * mass)) continue;
        Slopes const along = slopes_along(x, G[r], z);
        double const step = (along.pull - price[r] - l2 * f[r]) / (along.bend + l2);
        if (0.0 < step && step < INFINITE && along.pull > (1.0 + SLACK) * price[r]) {
            f[r] += step;
            add_multiple(step, G[r], n, z);
        }
    }
}

// Raise all entries of f by one number so that the divergence is finite; false if it cannot.
//
// It is infinite where x > 0 and the quotient is 0. The number makes z add up to x over these
// places. f stays if there are none, or if no component reaches them.
inline bool lift(ConstVector x, ConstVector quotients, ConstMatrix G, Vector f) {
    double lost = 0.0, reach = 0.0;
    for (Index j = 0; j < x.size(); j++) {
        if (x[j] > 0.0 && quotients[j] == 0.0) {
            lost += x[j];
            for (Index r = 0; r < f.size(); r++) reach += G(r, j);
        }
    }
    double const level = lost / reach;
    if (!(0.0 < level && level < INFINITE)) return false;
    for (Index r = 0; r < f.size(); r++) f[r] += level;
    return true;
}

// `lift` the row f, or else `release` its entries; the quotients may be overwritten.
inline void rescue(ConstVector x, Vector quotients, ConstMatrix G, Vector f, ConstVector price,
                   double l2) {
    if (!lift(x, quotients, G, f)) release(x, G, f, price, l2, quotients);
}

}  // namespace conepursuit::factorization::divergence
