// First and second derivatives of the Kullback-Leibler divergence by the entries of a model Z.
#pragma once

#include "product.hpp"

namespace conepursuit::factorization::divergence {

// The largest quotient x / z; larger ones are set to it, so that float32 can hold them.
constexpr double LARGEST = 1e30;

// What a row of quotients shows: the largest of them, and at how many places z is zero and x not.
struct Quotients {
    double most;
    std::int64_t lost;
};

// Write x / z - 1 for one row, -1 where z is zero.
template <class T>
Quotients divide_row(ConstVector x, ConstVector z, Span<T> out) {
    const double *const p = x.data(), *const q = z.data();
    T *const to = out.data();
    double most = 1.0;
    std::int64_t lost = 0;
#pragma omp simd reduction(max : most) reduction(+ : lost)
    for (Index j = 0; j < x.size(); j++) {
        double const quotient = std::min(p[j] / (q[j] > 0.0 ? q[j] : INFINITE), LARGEST);
        most = std::max(most, quotient);
        lost += (p[j] > 0.0) & !(q[j] > 0.0);
        to[j] = static_cast<T>(quotient - 1.0);
    }
    return {most, lost};
}

// Write m (x / z - 1), minus the gradient; without weights, M is empty. T is float or double.
//
// Where z is zero and x is not, the quotient is set to the largest of all others, or to 1 if that
// is larger.
template <class T>
void slopes(ConstMatrix X, ConstMatrix M, ConstMatrix Z, Grid<T> out) {
    Quotients all{1.0, 0};
    for (Index i = 0; i < X.rows(); i++) {
        Quotients const row = divide_row(X[i], Z[i], out[i]);
        all = {std::max(all.most, row.most), all.lost + row.lost};
    }
    for (Index i = 0; i < X.rows() && all.lost > 0; i++)
        for (Index j = 0; j < X.columns(); j++)
            if (X(i, j) > 0.0 && !(Z(i, j) > 0.0)) out(i, j) = static_cast<T>(all.most - 1.0);
    for (Index i = 0; i < M.rows(); i++)
        for (Index j = 0; j < M.columns(); j++) out(i, j) = static_cast<T>(out(i, j) * M(i, j));
}

// sum_j x_j (v_j / z_j)^2 without the places where z = 0, times m_j if `weighted`.
template <bool weighted>
double bend_of(ConstVector x, const double *m, ConstVector z, ConstVector v) {
    const double *const p = x.data(), *const q = z.data(), *const to = v.data();
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index j = 0; j < x.size(); j++) {
        double const share = to[j] / (q[j] > 0.0 ? q[j] : INFINITE);
        double const weight = weighted ? m[j] * p[j] : p[j];
        total = fused(weight * share, share, total);
    }
    return total;
}

// <u v', H u v'>, H the Hessian: m x / z^2 on its diagonal, 0 where z = 0.
inline double curvature(ConstMatrix X, ConstMatrix M, ConstMatrix Z, ConstVector u, ConstVector v) {
    double total = 0.0;
    for (Index i = 0; i < X.rows(); i++) {
        double const line = M.empty() ? bend_of<false>(X[i], nullptr, Z[i], v)
                                      : bend_of<true>(X[i], M[i].data(), Z[i], v);
        total += u[i] * u[i] * line;
    }
    return total;
}

}  // namespace conepursuit::factorization::divergence
