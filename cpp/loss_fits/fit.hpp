// A fit of one target under one of the `losses.hpp`, and its objective.
//
// For a target y with weights w the objective is
//
//   F(c) = sum_i w_i l(x_i, y_i) + penalty sum_j c_j,   x = sum_j c_j a_j,   c >= 0.
#pragma once

#include "../shared/lanes.hpp"
#include "losses.hpp"

namespace conepursuit::loss_fits {

// The loss, the penalty and the atoms, for targets with the same weights of their entries.
//
// `rows` holds the n atoms and, after them, the sum of the atoms, each scaled to about the same
// length, from which a fit may start. `prices` are the penalties for a unit of weight of each row,
// `norms` their lengths over the entries with weight. Zeros pad `rows` in both directions. `gram`
// is the Hessian of the loss if that is the same for all targets, otherwise empty.
struct Problem {
    Loss loss;
    double penalty;
    Matrix rows;
    Vector norms;
    Vector prices;
    ConstMatrix gram;
};

// The arrays of the fit of one target by n atoms and their sum: its data, its state, and work
// space.
struct Fit {
    Index width, height;

    // Over the entries: the target y with weights w, the fit x, the fit `ahead` that the last model
    // proposes, g = w l'(x), the curvatures of the model as `metric`, a vector t of a proof, and
    // |A| c as `spread`.
    Buffer<double> y, w, x, ahead, g, metric, t, spread;

    // Over the atoms: the weights c, the derivatives of F as `dual` and, for a proof, minus these
    // as `descent`, the `products` of the atoms with t, and bounds on the errors of both; z are the
    // weights of the atoms in t.
    Buffer<double> c, dual, descent, descent_error, products, products_error, z;

    // Of the quadratic model: its atoms, listed by `members`, their weights v and derivatives
    // `descent`; its Hessian Q, made of the scaled atoms B at the entries `where` it is curved; and
    // the factor C of the atoms that are passive in it, listed by `order`.
    Buffer<double> v;
    Buffer<std::int64_t> where, members, order;
    Table<double> B, Q, C;

    Fit(Index n, Index m)
        : width(padded(m)), height(padded(n + 1) + WIDTH), y(width), w(width), x(width),
          ahead(width), g(width), metric(width), t(width), spread(width), c(height), dual(height),
          descent(height), descent_error(height), products(height), products_error(height),
          z(height), v(height), where(width), members(height), order(height), B(height, width),
          Q(height, height), C(height, height) {}
};

// x += weight * row; each product and each sum is rounded, so that opposite terms cancel exactly.
inline void add_row(double weight, ConstVector row, Vector x) {
    check(x.size(), row.size() + 1);
    const double *p = row.data();
    double *q = x.data();
    Index const m = x.size();
#pragma omp simd
    for (Index i = 0; i < m; i++) q[i] += weight * p[i];
}

// Write x = sum_j c_j a_j.
inline void combine(const Problem &P, ConstVector c, Vector x) {
    x.fill(0.0);
    for (Index j = 0; j < P.norms.size(); j++)
        if (c[j] != 0.0) add_row(c[j], P.rows[j], x);
}

// Write g = w l'(x), and the derivative of F by each weight, from x.
inline void differentiate(const Problem &P, Fit &S) {
    for (Index i = 0; i < S.width; i++)
        S.g[i] = S.w[i] > 0.0 ? S.w[i] * slope(P.loss, S.y[i], S.x[i]) : 0.0;
    multiply(P.rows, S.g, P.norms.size(), S.width, S.dual);
    for (Index j = 0; j < P.norms.size(); j++) S.dual[j] += P.prices[j];
}

// The penalty of the weights c.
inline double paid(const Problem &P, ConstVector c) {
    double total = 0.0;
    for (Index j = 0; j < P.prices.size(); j++) total += c[j] * P.prices[j];
    return total;
}

// F(c), from c and x.
inline double objective(const Problem &P, const Fit &S) {
    double total = paid(P, S.c);
    for (Index i = 0; i < S.width; i++)
        if (S.w[i] > 0.0) total += S.w[i] * loss(P.loss, S.y[i], S.x[i]);
    return total;
}

// The rounding of F(c): a few units in the last place of the sizes of its terms.
inline double rounding(const Problem &P, const Fit &S) {
    double total = paid(P, S.c);
    for (Index i = 0; i < S.width; i++)
        if (S.w[i] > 0.0) total += S.w[i] * size(P.loss, S.y[i], S.x[i]);
    return 8.0 * EPS * total;
}

// Whether x is in the domain of the loss at every entry with weight.
inline bool inside(const Problem &P, const Fit &S) {
    for (Index i = 0; i < S.width; i++)
        if (S.w[i] > 0.0 && !(margin(P.loss, S.y[i], S.x[i]) > 0.0)) return false;
    return true;
}

}  // namespace conepursuit::loss_fits
