// Iterative refinement of a least-squares solution, with residuals in twice the precision.
//
// A solution computed by a QR factorisation loses digits with the square of the condition number
// where the residual is not small. Refining x and r together (Bjorck 1967) gives them back. The
// transformations without error below rely on it that the compiler neither reorders nor fuses.
#pragma once

#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "proofs need arithmetic as it is written; compile without -ffast-math or /fp:fast"
#endif

#include <algorithm>
#include <cmath>

#include "../shared/triangular.hpp"

namespace conepursuit {

// a * b minus its rounded value `product`.
inline double product_error(double a, double b, double product) {
    return std::fma(a, b, -product);
}

// a + b minus its rounded value.
inline double sum_error(double a, double b) {
    double const total = a + b, share = total - a;
    return (a - (total - share)) + (b - share);
}

// Write b - r - A x, computed in twice the precision and rounded once; r may be empty, for zero.
//
// Only the first k atoms in `order` have weight. `low` is work space of the size of b.
inline void accurate_residual(ConstMatrix atoms, ConstVector b, ConstVector r, ConstVector x,
                              ConstPlaces order, Index k, Vector out, Vector low) {
    Index const m = b.size();
    double *high = out.data(), *rest = low.data();
    for (Index i = 0; i < m; i++) {
        double const known = r.empty() ? 0.0 : r[i];
        rest[i] = sum_error(b[i], -known);
        high[i] = b[i] - known;
    }
    for (Index p = 0; p < k; p++) {
        double const weight = -x[order[p]];
        const double *column = atoms[order[p]].data();
#pragma omp simd
        for (Index i = 0; i < m; i++) {
            double const term = weight * column[i];
            rest[i] += product_error(weight, column[i], term) + sum_error(high[i], term);
            high[i] += term;
        }
    }
    for (Index i = 0; i < m; i++) high[i] += rest[i];
}

// <a, b>, computed in twice the precision and rounded once.
inline double accurate_dot(ConstVector a, ConstVector b) {
    double high = 0.0, low = 0.0;
    for (Index i = 0; i < a.size(); i++) {
        double const term = a[i] * b[i];
        low += product_error(a[i], b[i], term) + sum_error(high, term);
        high += term;
    }
    return high + low;
}

// Write <a, r> for the first k atoms in `order`, summed in twice the precision.
//
// Atoms are taken eight at a time and transposed, so that the inner loop runs over atoms.
inline void accurate_slopes(ConstMatrix atoms, ConstPlaces order, Index k, ConstVector r,
                            Vector out) {
    for (Index first = 0; first < k; first += WIDTH) {
        const double *rows[WIDTH];
        double high[WIDTH] = {}, low[WIDTH] = {};
        for (Index i = 0; i < WIDTH; i++) {
            rows[i] = atoms[order[std::min(first + i, k - 1)]].data();
        }
        for (Index j = 0; j < r.size(); j++) {
            double const weight = r[j];
            double entry[WIDTH];
            for (Index i = 0; i < WIDTH; i++) entry[i] = rows[i][j];
#pragma omp simd
            for (Index i = 0; i < WIDTH; i++) {
                double const term = weight * entry[i];
                low[i] += sum_error(high[i], term) + product_error(weight, entry[i], term);
                high[i] += term;
            }
        }
        for (Index i = first; i < std::min(first + WIDTH, k); i++) {
            out[i] = high[i - first] + low[i - first];
        }
    }
}

// Correct x and r = b - A x of the passive atoms, in place, until corrections are rounding.
//
// It also ends when a correction is not less than half of the one before. With A_P = Q'C' and
// f = b - r - A x, h = C^-1 (-A'r), the correction solves the augmented system r + A x = b,
// A'r = 0: dx = C^-T (Q f - h), dr = f - Q'(Q f - h). `f`, `low` and `dx` are work space.
inline void refine(ConstMatrix atoms, ConstVector b, Vector x, Vector r, ConstPlaces order, Index k,
                   ConstMatrix C, ConstMatrix Q, Vector f, Vector low, Vector dx) {
    Index const m = b.size();
    double largest = INFINITE;
    for (int round = 0; round < 10; round++) {
        accurate_residual(atoms, b, r, x, order, k, f, low);
        for (Index i = 0; i < k; i++) dx[i] = -accurate_dot(atoms[order[i]], r);
        forward_solve(C, k, dx);
        for (Index i = 0; i < k; i++) dx[i] = dot(Q[i], f, m) - dx[i];
        for (Index i = 0; i < k; i++) add_multiple(-dx[i], Q[i], m, f);
        backward_solve(C, k, dx);
        double change = 0.0;
        for (Index i = 0; i < k; i++) {
            double const size = std::max(std::fabs(x[order[i]]), 1e-300);
            change = std::max(change, std::fabs(dx[i]) / size);
        }
        if (!(change < 0.5 * largest)) break;
        for (Index i = 0; i < k; i++) x[order[i]] += dx[i];
        for (Index j = 0; j < m; j++) r[j] += f[j];
        largest = change;
        if (change <= EPS) break;
    }
}

}  // namespace conepursuit
