// A step of Newton's method for the weights of one row; `divergence_weights.hpp` defines P and u.
//
// The quadratic model of P is minimised over u >= 0 by an active set, and the step is halved until
// P falls by the share `SLOPE` of what the gradient promises.
#pragma once

#include "../shared/triangular.hpp"
#include "product.hpp"

namespace conepursuit::factorization::row_weights {

// Guards against components that depend on each other: the diagonal of a Hessian is raised by the
// share RIDGE. A weight is free in the model if its pivot is above the share LEAST_PIVOT of its
// diagonal entry; otherwise it stays where it is.
constexpr double RIDGE = 1e-12, LEAST_PIVOT = 1e-13;

// Solves for one quadratic model, at most, per weight in it; then the model is left unfinished.
constexpr Index TURNS = 3;

// Share of the fall promised by the gradient that a step must reach; otherwise it is halved.
constexpr double SLOPE = 1e-4;

// How many lengths of a step are tried, each half the one before, until the step is given up.
constexpr Index HALVINGS = 30;

// P for one row (a, x, c, q), and the present u with z = u'a, y = x / z and the gradient g.
struct Row {
    ConstMatrix a;
    ConstVector x, c, q;
    Vector u, g, z, y;
};

// Work space of `newton_step` for k components and rows of at most `longest` entries.
//
// `chosen` lists the components of the model, `v` their weights and `slope` the derivatives of the
// model. `factor` belongs to the weights that are free, which `order` lists and `inside` marks. `y`
// holds the solution of a linear system, `cosines` and `sines` hold rotations, `step` the step of
// all weights, `scaled`, as large as Row::a, the atoms of a Hessian, and `second` the Hessian.
struct Space {
    Space(Index k, Index longest)
        : chosen(k), order(k), v(k), slope(k), y(k), cosines(k), sines(k), step(k),
          scaled(k * longest), second(k * k), factor(k, k), inside(k) {}
    Buffer<std::int64_t> chosen, order;
    Buffer<double> v, slope, y, cosines, sines, step, scaled, second;
    Table<double> factor;
    Buffer<bool> inside;
};

// A quadratic function of the weights v >= 0: its Hessian H, and its gradient `slope` at v.
struct Model {
    ConstMatrix H;
    Vector v, slope;
};

// Write z = u'a.
inline void combine(ConstMatrix a, ConstVector u, Vector z) {
    z.fill(0.0);
    for (Index r = 0; r < u.size(); r++)
        if (u[r] != 0.0) add_multiple(u[r], a[r], z.size(), z);
}

// Set weight `last` to zero, take all zero weights out of the factor; return how many stay.
inline Index leave(const Space &S, const Model &model, Index rank, Index last) {
    model.v[last] = 0.0;
    for (Index place = rank - 1; place >= 0; place--) {
        Index const i = S.order[place];
        if (model.v[i] == 0.0) {
            S.inside[i] = false;
            remove(S.factor, S.order, rank--, place, S.cosines, S.sines);
        }
    }
    return rank;
}

// Move the free weights to the minimiser of the model, or up to where the first becomes zero, which
// is returned, -1 if none does; the slopes follow.
inline Index advance(const Space &S, const Model &model, Index rank) {
    Index const count = model.v.size();
    for (Index i = 0; i < rank; i++) S.y[i] = -model.slope[S.order[i]];
    forward_solve(S.factor, rank, S.y);
    backward_solve(S.factor, rank, S.y);
    double length = 1.0;
    Index last = -1;
    for (Index i = 0; i < rank; i++) {
        double const weight = model.v[S.order[i]];
        if (weight + length * S.y[i] < 0.0) length = -weight / S.y[i], last = S.order[i];
    }
    for (Index i = 0; i < rank; i++) {
        Index const own = S.order[i];
        model.v[own] = std::max(model.v[own] + length * S.y[i], 0.0);
        add_multiple(length * S.y[i], model.H[own], count, model.slope);
    }
    return last;
}

// The weight that is not free and whose slope is the most negative, -1 if none is below rounding.
inline Index steepest_of(const Space &S, ConstVector slope) {
    Index steepest = -1;
    for (Index i = 0; i < slope.size(); i++)
        if (!S.inside[i] && slope[i] < (steepest >= 0 ? slope[steepest] : -8.0 * EPS)) steepest = i;
    return steepest;
}

// Minimise a quadratic function over v >= 0 by an active set, from model.v, in place.
//
// The gradient is updated with it. This is Lawson and Hanson's method, started from given weights:
// those that are positive are free at first. A free weight that would become negative leaves, one
// after the other; then the weight of steepest descent is freed. Each change lowers the function,
// so that stopping early (`TURNS`) is safe.
inline void settle(const Model &model, const Space &S) {
    Index const count = model.v.size();
    Index rank = 0;
    auto const free = [&](Index i) {
        return append(S.factor, S.order, rank, model.H[i], i, LEAST_PIVOT);
    };
    for (Index i = 0; i < count; i++) {
        S.inside[i] = model.v[i] > 0.0 && free(i);
        rank += S.inside[i];
    }
    for (Index turn = 0; turn < TURNS * count; turn++) {
        Index const last = advance(S, model, rank);
        if (last >= 0) {
            rank = leave(S, model, rank, last);
            continue;
        }
        Index const steepest = steepest_of(S, model.slope);
        if (steepest < 0 || !free(steepest)) break;
        S.inside[steepest] = true;
        rank++;
    }
}

// The second derivatives of P by the first `count` chosen weights, the diagonal raised by `RIDGE`.
// y is overwritten.
inline Matrix hessian(const Row &R, const Space &S, Index count) {
    Index const n = R.x.size();
    Matrix const b(S.scaled.span().data(), count, n), H(S.second.span().data(), count, count);
    double *const roots = R.y.data();
    for (Index j = 0; j < n; j++) roots[j] = std::sqrt(R.x[j]) / R.z[j];
    for (Index i = 0; i < count; i++) {
        const double *const atom = R.a[S.chosen[i]].data();
        double *const to = b[i].data();
#pragma omp simd
        for (Index j = 0; j < n; j++) to[j] = atom[j] * roots[j];
    }
    gram_of(b, H);
    for (Index i = 0; i < count; i++) H(i, i) = (1.0 + RIDGE) * H(i, i) + R.q[S.chosen[i]];
    return H;
}

// P(u + step) - P(u), summed from the changes of its terms, so that nothing cancels.
//
// It is infinite where z + step'a is not positive. y is overwritten.
inline double difference(const Row &R, ConstVector step) {
    combine(R.a, step, R.y);
    double total = 0.0;
    for (Index r = 0; r < step.size(); r++)
        total += step[r] * (R.c[r] + R.q[r] * (R.u[r] + 0.5 * step[r]));
    for (Index j = 0; j < R.x.size(); j++) {
        double const change = R.y[j] / R.z[j];
        if (!(change > -1.0)) return INFINITE;
        total -= R.x[j] * std::log1p(change);
    }
    return total;
}

// Write the step from u to the minimiser of the quadratic model of P.
//
// Weights that are zero and whose derivative is not negative are left out of the model.
inline void propose(const Row &R, const Space &S) {
    Index count = 0;
    for (Index r = 0; r < R.u.size(); r++) {
        S.step[r] = 0.0;
        if (R.u[r] > 0.0 || R.g[r] < 0.0) {
            S.chosen[count] = r, S.v[count] = R.u[r], S.slope[count] = R.g[r];
            count++;
        }
    }
    Matrix const H = hessian(R, S, count);
    settle({H, S.v.span().part(0, count), S.slope.span().part(0, count)}, S);
    for (Index i = 0; i < count; i++) S.step[S.chosen[i]] = S.v[i] - R.u[S.chosen[i]];
}

// Move u towards the minimiser of a quadratic model of P; false if P does not fall on the way.
//
// y is overwritten; z and g are not updated.
inline bool newton_step(const Row &R, const Space &S) {
    propose(R, S);
    Vector const step = S.step;
    double promise = dot(R.g, step, step.size());
    for (Index halving = 0; halving < HALVINGS; halving++) {
        if (promise < 0.0 && difference(R, step) <= SLOPE * promise) {
            for (Index r = 0; r < step.size(); r++) R.u[r] = std::max(R.u[r] + step[r], 0.0);
            return true;
        }
        for (Index r = 0; r < step.size(); r++) step[r] *= 0.5;
        promise *= 0.5;
    }
    return false;
}

}  // namespace conepursuit::factorization::row_weights
