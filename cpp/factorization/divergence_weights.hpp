// The best weights of given components under the divergence of Kullback and Leibler, row by row.
//
// For each row x of a sparse matrix and components G of k x n, this minimises over f >= 0
//
//     phi(f) = sum_j (x_j log(x_j / z_j) - x_j + z_j) + l1 sum(f) + l2 |f|^2 / 2,   z = f'G.
//
// An entry of x that is not stored is zero and contributes z alone, which is summed through the
// sums s of the rows of G. Let m = sum(x), and let w_r be the weight that component r would have
// alone: w (s + l1) + l2 w^2 = m. With f = w u, up to a constant, phi / m is
//
//     P(u) = -sum_j x_j log z_j + sum_r (c_r u_r + q_r u_r^2 / 2),   z = u'a,   c + q = 1,
//
// where x is scaled to sum to 1, and only places with x > 0 that some component reaches are kept. a
// is w G with each column divided by its largest entry, which changes P by a constant. So nothing
// in P has a scale. At the minimiser sum_r u_r (c_r + q_r u_r) = 1, hence u <= 1, |u| <= 1, and
// z >= x. As P is convex, its gradient g at any u proves
//
//     P(u) - min P <= <g, u> + |min(g, 0)|.
//
// Sweeps over single weights, which are safe from anywhere, alternate with steps of Newton's
// method, which are fast near the minimiser, until this bound is within the tolerance.
#pragma once

#include "divergence_newton.hpp"

namespace conepursuit::factorization::row_weights {

// The smallest number that is divided by. A smaller z is raised to it; a component whose entries
// sum to less counts as zero.
constexpr double SMALLEST_DIVISOR = 1e-300;

// Share of a weight by which it may fall in one move of a sweep. If it falls by more, it is moved
// again, up to `LOOKS` times. If not, no entry of z falls by a larger share, so that the curvature
// of P is about as before, and the move lowers P.
constexpr double CLOSE = 0.1;

// How often one weight is moved in a sweep, at most.
constexpr Index LOOKS = 4;

// Penalties, the bound on P(u) - min P at which a row is done, and the most sweeps for a row.
struct Terms {
    double l1, l2, tolerance;
    Index max_sweeps;
};

// What all rows share, and the memory of one of them.
//
// `columns` are those of G, each divided by its largest entry; those whose largest entry is
// positive are `reached`. `sums` are the sums of the rows of G. `at` lists the places of a row that
// matter, `unit` holds w / m, `relative` and `column` are work space of `gather`.
struct Work {
    Work(Index k, Index n, Index longest)
        : columns(n, k), reached(n), at(longest), sums(k), unit(k), relative(k), column(k), c(k),
          q(k), u(k), g(k), atoms(k * longest), x(longest), z(longest), y(longest),
          space(k, longest) {}
    Table<double> columns;
    Buffer<bool> reached;
    Buffer<std::int64_t> at;
    Buffer<double> sums, unit, relative, column, c, q, u, g, atoms, x, z, y;
    Space space;
};

// The places of a row that matter: how many there are, and the sum of x over them.
struct Chosen {
    Index n;
    double mass;
};

// Write the scaled columns of G, whether each is reached, and the sums of its rows.
//
// A component whose sum is below `SMALLEST_DIVISOR` counts as zero.
inline void level(ConstMatrix G, const Work &W) {
    Index const k = G.rows();
    transpose(G, W.columns);
    sum_rows(G, W.sums);
    for (Index r = 0; r < k; r++) {
        if (!(W.sums[r] < SMALLEST_DIVISOR)) continue;
        for (Index j = 0; j < G.columns(); j++) W.columns(j, r) = 0.0;
        W.sums[r] = 0.0;
    }
    for (Index j = 0; j < G.columns() && k > 0; j++) {
        Vector const column = W.columns[j];
        double const top = *std::max_element(column.begin(), column.end());
        W.reached[j] = top > 0.0;
        for (Index r = 0; r < k && top > 0.0; r++) column[r] /= top;
    }
}

// Write the places that matter, and x there, scaled to sum to 1.
//
// They are those with x > 0 that some component reaches. At a place with x > 0 that none reaches,
// phi is infinite whatever the weights are.
template <class N>
Chosen choose(ConstVector data, Span<const N> places, const Work &W) {
    Index n = 0;
    double largest = 0.0, total = 0.0;
    for (Index p = 0; p < data.size(); p++) {
        if (data[p] > 0.0 && W.reached[places[p]]) {
            W.x[n] = data[p], W.at[n] = places[p];
            largest = std::max(largest, data[p]);
            n++;
        }
    }
    for (Index p = 0; p < n; p++) total += W.x[p] /= largest;
    for (Index p = 0; p < n; p++) W.x[p] /= total;
    return {n, total * largest};
}

// Write w / m as `unit`, and c and q, for every component; the file's head says what they are.
//
// `mass` is m. A component that is zero has w = 0.
inline void weigh(double mass, const Terms &terms, const Work &W) {
    double const root = 2.0 * std::sqrt(terms.l2) * std::sqrt(mass);
    for (Index r = 0; r < W.sums.span().size(); r++) {
        double const price = W.sums[r] + terms.l1;
        W.unit[r] = W.sums[r] > 0.0 ? 2.0 / (price + std::hypot(price, root)) : 0.0;
        double const share = 0.5 * root * W.unit[r];
        W.c[r] = price * W.unit[r], W.q[r] = share * share;
    }
}

// Write a, which is w G at the places that matter, each column divided by its largest entry.
inline void gather(Matrix a, const Work &W) {
    Index const k = a.rows();
    double widest = SMALLEST_DIVISOR;
    for (Index r = 0; r < k; r++) widest = std::max(widest, W.unit[r]);
    for (Index r = 0; r < k; r++) W.relative[r] = W.unit[r] / widest;
    for (Index j = 0; j < a.columns(); j++) {
        ConstVector const given = W.columns[W.at[j]];
        double top = SMALLEST_DIVISOR;
        for (Index r = 0; r < k; r++) {
            W.column[r] = given[r] * W.relative[r];
            top = std::max(top, W.column[r]);
        }
        double const inverse = 1.0 / top;
        for (Index r = 0; r < k; r++) a(r, j) = W.column[r] * inverse;
    }
}

// Write the u to start from: the multiple of f, column i of F, with the least P, or 0 if f is 0.
inline void begin(const Row &R, ConstMatrix F, Index i, double mass, ConstVector unit) {
    double linear = 0.0, squared = 0.0;
    for (Index r = 0; r < R.u.size(); r++) {
        R.u[r] = unit[r] > 0.0 ? F(r, i) / unit[r] / mass : 0.0;
        linear += R.c[r] * R.u[r];
        squared += R.q[r] * R.u[r] * R.u[r];
    }
    double const multiple = 2.0 / (linear + std::hypot(linear, 2.0 * std::sqrt(squared)));
    bool const usable = 0.0 < multiple && multiple < INFINITE;
    for (Index r = 0; r < R.u.size(); r++) R.u[r] = usable ? R.u[r] * multiple : 0.0;
}

// Raise a weight for every entry with z < x / 2; return whether there are any.
//
// A minimiser has z >= x. Such entries occur at the start, and where the z that a sweep has updated
// is larger, by rounding, than the z that belongs to u.
inline bool lift(const Row &R) {
    bool low = false;
    for (Index j = 0; j < R.x.size(); j++) {
        if (!(R.z[j] < 0.5 * R.x[j])) continue;
        Index nearest = 0;
        for (Index r = 1; r < R.a.rows(); r++)
            if (R.a(r, j) > R.a(nearest, j)) nearest = r;
        if (R.a(nearest, j) > 0.0) {
            R.u[nearest] += R.x[j];
            low = true;
        }
    }
    return low;
}

// Compute z, x / z and the gradient from u, after `lift`; return the bound on P(u) - min P.
inline double survey(const Row &R) {
    combine(R.a, R.u, R.z);
    if (lift(R)) combine(R.a, R.u, R.z);
    for (Index j = 0; j < R.x.size(); j++) {
        R.z[j] = std::max(R.z[j], SMALLEST_DIVISOR);
        R.y[j] = R.x[j] / R.z[j];
    }
    double inward = 0.0, outward = 0.0;
    for (Index r = 0; r < R.u.size(); r++) {
        double const slope = R.c[r] + R.q[r] * R.u[r] - dot(R.a[r], R.y, R.x.size());
        double const down = std::min(slope, 0.0);
        R.g[r] = slope;
        inward += R.u[r] * slope;
        outward += down * down;
    }
    return inward + std::sqrt(outward);
}

// Add step * a to z; an entry falls to no less than EPS times its old value, so that z > 0.
inline void move(ConstVector a, double step, Vector z) {
    const double *const p = a.data();
    double *const q = z.data();
#pragma omp simd
    for (Index j = 0; j < z.size(); j++) q[j] = std::max(fused(step, p[j], q[j]), EPS * q[j]);
}

// An approximate minimiser of P along one weight u; it never exceeds the exact one.
//
// As a function of the weight t, the pull is a sum of terms x / (t - p) with poles p <= 0, so that
// 1 / pull, a harmonic mean, is concave. Its tangent at u gives a model of the pull with one pole.
// The solution of c + q t = model is never too large, and closer than that of Newton's method. The
// formula is written so that nothing cancels, even if the pole is far away.
inline double minimiser(double u, double pull, double bend, double c, double q) {
    double const reach = pull / bend;  // from the pole to u
    double const price = c + q * u;    // of one more unit of u
    if (!(0.0 < reach && reach < INFINITE)) return pull > price ? u : 0.0;
    double const total = price + q * reach;
    double const root = std::hypot(price - q * reach, 2.0 * std::sqrt(q * reach * pull));
    double const best = u + 2.0 * (pull - price) / ((total + root) / reach);
    return best > 0.0 ? best : 0.0;
}

// Move one weight after the other close to where P is least along it; z is updated.
//
// Weights that are zero, with a derivative that is not negative at the last survey, are skipped.
inline void sweep(const Row &R) {
    for (Index r = 0; r < R.u.size(); r++) {
        if (!(R.u[r] > 0.0 || R.g[r] < 0.0)) continue;
        for (Index time = 0; time < LOOKS; time++) {
            double const before = R.u[r];
            divergence::Slopes const seen = divergence::slopes_along(R.x, R.a[r], R.z);
            R.u[r] = minimiser(before, seen.pull, seen.bend, R.c[r], R.q[r]);
            double const step = R.u[r] - before;
            move(R.a[r], step, R.z);
            if (step >= -CLOSE * before) break;
        }
    }
}

// Minimise P over u; return whether P(u) - min P is proved to be within the tolerance.
inline bool minimise(const Row &R, const Space &space, const Terms &terms) {
    double bound = survey(R);
    for (Index i = 0; i < terms.max_sweeps && !(bound <= terms.tolerance); i++) {
        sweep(R);
        bound = survey(R);
        if (bound > terms.tolerance && newton_step(R, space)) bound = survey(R);
    }
    return bound <= terms.tolerance;
}

// Minimise phi for every row; return how many rows did not reach the tolerance.
//
// The data X >= 0 are in CSR form; no entry is stored twice. F, of k x rows, holds weights >= 0 to
// start from, which may be zeros, and then the solution. Components that are zero get the weight 0,
// as do all in a row that no component reaches. A row is done when its gradient proves that phi
// exceeds its least value by at most the tolerance times the sum of the row; rounding allows about
// 1e-14.
template <class N>
Index fit_rows(ConstVector data, const Pattern<N> &pattern, Matrix F, ConstMatrix G,
               const Terms &terms) {
    Index const k = F.rows();
    Index missed = 0;
    Work const W(k, G.columns(), longest_row(pattern.indptr));
    level(G, W);
    for (Index i = 0; i < F.columns(); i++) {
        ConstVector const own = data.part(pattern.begin(i), pattern.count(i));
        auto const [n, mass] = choose(own, pattern.row(i), W);
        if (n == 0) {
            for (Index r = 0; r < k; r++) F(r, i) = 0.0;
            continue;
        }
        Matrix const a(W.atoms.span().data(), k, n);
        weigh(mass, terms, W);
        gather(a, W);
        Row const row{a,   W.x.span().part(0, n), W.c, W.q, W.u, W.g, W.z.span().part(0, n),
                      W.y.span().part(0, n)};
        begin(row, F, i, mass, W.unit);
        missed += !minimise(row, W.space, terms);
        for (Index r = 0; r < k; r++) F(r, i) = W.u[r] * W.unit[r] * mass;
    }
    return missed;
}

}  // namespace conepursuit::factorization::row_weights
