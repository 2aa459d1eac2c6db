// Non-negative least squares of one target: an active set that admits blocks of atoms.
//
// Atoms are rows of contiguous memory. Those that may have weight are called passive. Two ways to
// keep the factor C of their Gram matrix share one loop: from inner products, which a Gram matrix
// holds or which are computed when an atom enters; and from an orthonormal basis of the passive
// atoms, which is as accurate as a QR factorisation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../shared/constants.hpp"
#include "../shared/lanes.hpp"
#include "../shared/triangular.hpp"

namespace conepursuit {

// Atoms enter with the steepest one if their slopes are above this share of its slope.
constexpr double STEEP_SHARE = 0.5;

// The number that may enter at once is doubled only up to this share of the passive atoms.
constexpr double GROWTH = 0.25;

// Sine of the angle between an atom and the span of the passive ones, for an orthonormal basis:
// above this the atom enters, otherwise it counts as a combination of them.
constexpr double DEPENDENT_SINE = 100.0 * EPS;

// A residual of at most this many times EPS ||b|| is rounding of b, and no further atom enters.
constexpr double EXHAUSTED = 2.0;

// Two atoms do not enter together if the cosine of their angle is above this: one of them would
// probably leave the other without weight.
constexpr double COHERENT = 0.8;

// Why an atom may not enter, as bits: IDLE ones would get no weight, until x changes; REFUSED ones
// depend on the passive atoms, until one of these leaves.
constexpr std::int8_t IDLE = 1, REFUSED = 2;

// Whether a sum of squares is finite and lost nothing to overflow or underflow.
inline bool in_range(double square, ConstVector entries) {
    if (square == 0.0) {
        return std::all_of(entries.begin(), entries.end(), [](double v) { return v == 0.0; });
    }
    return SMALLEST_SQUARE <= square && square <= LARGEST_SQUARE;
}

// What is given: the columns of A as rows, the target, c = A'b, one over the norms of the atoms (0
// for a zero atom), and A'A, or nothing where few of its entries are needed.
struct Data {
    ConstMatrix atoms;
    ConstVector b, c, inverse_norms;
    ConstMatrix G;

    Index m() const { return atoms.columns(); }
    Index n() const { return atoms.rows(); }
    Index rank() const { return std::min(m(), n()); }
};

// What a fit ended with.
struct Ended {
    Code code;
    Index steps;
};

// The passive atoms in the order of the factor, and all that is kept about them.
//
// C is the factor of their Gram matrix, and y solves C y = A_P'b. The rows of Q are an orthonormal
// basis of them, or there are none if inner products are used; p is b minus its projection on that
// basis. x are the weights of all atoms, and those of atoms that are not passive are zero.
class ActiveSet {
  public:
    ActiveSet(const Data &data, Matrix C, Places order, Vector y, Vector x, Vector p)
        : data(data), C(C), order(order), y(y), x(x), p(p), inside(data.n()), blocked(data.n()),
          cosines_(data.n() + 1), sines_(data.n() + 1), z_(data.n() + 1), slopes_(data.n()) {}

    bool orthogonal() const { return !Q.empty(); }

    // Take the first `count` atoms in the order as passive.
    void resume(Index count) {
        k = count;
        for (Index i = 0; i < k; i++) inside[order[i]] = true;
    }

    // Begin again without passive atoms, on an orthonormal basis with rows for all that may enter.
    void restart(Matrix basis) {
        Q = basis;
        k = 0;
        inside.span().fill(false);
        blocked.span().fill(0);
        for (Index i = 0; i < p.size(); i++) p[i] = data.b[i];
    }

    // Make an atom passive; if it depends on the passive ones, refuse it and return false.
    bool admit(Index atom) {
        ConstVector const column = data.atoms[atom];
        if (k >= data.rank() || !append_atom(atom, column)) {
            blocked[atom] = REFUSED;
            return false;
        }
        if (orthogonal()) {
            y[k] = dot(Q[k], p, data.m());
            add_multiple(-y[k], Q[k], data.m(), p);
        } else {
            y[k] = (data.c[atom] - dot(C[k], y, k)) * C(k, k);
        }
        inside[atom] = true;
        k++;
        return true;
    }

    // Remove the passive atom at `place` of the order.
    void drop(Index place) {
        Index const atom = order[place];
        x[atom] = 0.0;
        inside[atom] = false;
        remove(C, order, k, place, cosines_, sines_);
        rotate(y, k, place, cosines_, sines_);
        if (orthogonal()) {
            rotate_rows(Q, k, place, cosines_, sines_);
            add_multiple(y[k - 1], Q[k - 1], data.m(), p);
        }
        for (Index j = 0; j < data.n(); j++) blocked[j] &= IDLE;
        k--;
    }

    // Admit the steepest atoms and minimise over the passive ones, until no atom descends.
    //
    // g and r are work space for slopes and a residual.
    Ended pursue(Index limit, Index max_steps, Vector r, Vector g) {
        Index const n = data.n();
        Index room = 1, steps = descend(-1, max_steps);
        while (true) {
            double const tolerance = survey(r, g);
            bool free = false, refused = false;
            for (Index j = 0; j < n; j++) {
                slopes_[j] = g[j] * data.inverse_norms[j];
                if (slopes_[j] > tolerance && !inside[j]) {
                    free |= blocked[j] == 0;
                    refused |= blocked[j] == REFUSED;
                }
            }
            if (refused && (!free || !orthogonal())) return {STALLED, steps};
            if (!free) return {OPTIMAL, steps};
            if (k >= limit) return {MAX_ATOMS, steps};
            if (steps >= max_steps) return {MAX_STEPS, steps};
            Index const before = k;
            admit_block(tolerance, room);
            Index const entered = k - before;
            if (entered == 0) continue;  // all that were tried are blocked now
            steps += descend(before, max_steps - steps);
            if (limit < n) continue;
            Index const grown = std::max<Index>(2, Index(GROWTH * double(k)));
            room = k == before + entered ? std::min(2 * room, grown) : (room + 1) / 2;
        }
    }

    // Write b - A x as r.
    void residual(Vector r) const {
        for (Index j = 0; j < data.m(); j++) r[j] = data.b[j];
        for (Index i = 0; i < k; i++) {
            add_multiple(-x[order[i]], data.atoms[order[i]], data.m(), r);
        }
    }

    // The expected rounding of <a, b - A x> for a unit atom a.
    double rounding() const {
        double size = std::sqrt(dot(data.b, data.b, data.m()));
        for (Index i = 0; i < k; i++) size += x[order[i]] / data.inverse_norms[order[i]];
        return expected_rounding(data.m()) * size;
    }

    const Data &data;
    Matrix C;
    Places order;
    Vector y, x, p;
    Matrix Q;
    Index k = 0;
    Buffer<bool> inside;
    Buffer<std::int8_t> blocked;

  private:
    // Add an atom to the factor, and to the basis if there is one; false if it depends on others.
    bool append_atom(Index atom, ConstVector column) {
        if (orthogonal()) return append_orthogonal(atom, column);
        if (!data.G.empty()) return append(C, order, k, data.G[atom], atom, ILL_CONDITIONED);
        Vector const row = C[k];
        for (Index i = 0; i < k; i++) row[i] = dot(data.atoms[order[i]], column, data.m());
        order[k] = atom;
        return complete(C, k, dot(column, column, data.m()), ILL_CONDITIONED);
    }

    // Orthogonalise an atom, twice, and add it to basis and factor.
    bool append_orthogonal(Index atom, ConstVector column) {
        Index const m = data.m();
        Vector const q = Q[k], row = C[k];
        for (Index j = 0; j < m; j++) q[j] = column[j];
        for (Index i = 0; i < k; i++) row[i] = 0.0;
        double const floor = DEPENDENT_SINE * std::sqrt(dot(column, column, m));
        double length = 0.0;
        for (int round = 0; round < 2; round++) {
            for (Index i = 0; i < k; i++) {
                double const overlap = dot(Q[i], q, m);
                row[i] += overlap;
                add_multiple(-overlap, Q[i], m, q);
            }
            length = std::sqrt(dot(q, q, m));
            if (!(length > floor)) return false;
        }
        for (Index j = 0; j < m; j++) q[j] /= length;
        row[k] = 1.0 / length;
        order[k] = atom;
        return true;
    }

    // Make the steepest atoms passive, at most `room` at once.
    //
    // The first is the steepest of all. The others are steep enough relative to it, and no two of
    // them are coherent. Slopes of atoms that were tried are overwritten.
    void admit_block(double cut, Index room) {
        Index const before = k;
        while (k - before < room) {
            Index best = -1;
            double steepest = cut;
            for (Index j = 0; j < data.n(); j++) {
                if (slopes_[j] > steepest && !inside[j] && blocked[j] == 0) {
                    best = j, steepest = slopes_[j];
                }
            }
            if (best < 0) break;
            slopes_[best] = -INFINITE;
            if (coherent(best, before)) continue;
            if (admit(best)) {
                cut = std::max(cut, STEEP_SHARE * steepest);
            } else if (!orthogonal()) {  // too few digits are left in the Gram matrix for more
                break;
            }
        }
    }

    // Whether an atom is coherent with one that entered after the first `before`.
    bool coherent(Index atom, Index before) const {
        for (Index i = before; i < k; i++) {
            Index const other = order[i];
            double const product = data.G.empty()
                                       ? dot(data.atoms[other], data.atoms[atom], data.m())
                                       : data.G(other, atom);
            double const scale = data.inverse_norms[other] * data.inverse_norms[atom];
            if (product * scale > COHERENT) return true;
        }
        return false;
    }

    // Make p orthogonal to the basis up to rounding of p, not only of b; return its norm.
    double project() {
        Index const m = data.m();
        for (Index i = 0; i < k; i++) {
            double const overlap = dot(Q[i], p, m);
            y[i] += overlap;
            add_multiple(-overlap, Q[i], m, p);
        }
        return std::sqrt(dot(p, p, m));
    }

    // Write g = A'(b - A x) at the minimiser x of the passive atoms; return its tolerance.
    //
    // The slope of a unit atom counts as zero up to the tolerance. With an orthonormal basis the
    // residual is p, which is orthogonal to the passive atoms up to rounding of p. So the tolerance
    // is relative to p, not to b, and nearly dependent atoms can still make a fit exact. It is
    // infinite if p is no more than the rounding of b.
    double survey(Vector r, Vector g) {
        if (orthogonal()) {
            double const left = project(), size = std::sqrt(dot(data.b, data.b, data.m()));
            multiply_all(data.atoms, p, g);
            return left <= EXHAUSTED * EPS * size ? INFINITE : DESCENT_ROUNDINGS * EPS * left;
        }
        if (data.G.empty()) {
            residual(r);
            multiply_all(data.atoms, r, g);
        } else {
            for (Index j = 0; j < data.n(); j++) g[j] = data.c[j];
            for (Index i = 0; i < k; i++) {
                add_multiple(-x[order[i]], data.G[order[i]], data.n(), g);
            }
        }
        return rounding();
    }

    // Minimise over the passive atoms; those whose weight reaches zero leave. Return the solves.
    //
    // Atoms that have just entered and would become negative leave before x moves, and are blocked
    // until it does. If `settled` atoms are left by then, only those that were passive before are,
    // and x is their minimiser already.
    Index descend(Index settled, Index max_steps) {
        Index steps = 0;
        while (k > 0 && steps < max_steps) {
            steps++;
            for (Index i = 0; i < k; i++) z_[i] = y[i];
            backward_solve(C, k, z_);
            Index const before = k;
            for (Index i = k - 1; i >= 0; i--) {
                if (z_[i] <= 0.0 && x[order[i]] == 0.0) {
                    blocked[order[i]] = IDLE;
                    drop(i);
                }
            }
            if (k == settled) break;
            if (k < before) continue;
            settled = -1;
            if (move_to_minimiser()) break;
        }
        return steps;
    }

    // Move x towards z until a weight is zero; such atoms leave. Whether it got there.
    bool move_to_minimiser() {
        double step = 1.0;
        Index last = -1;
        for (Index i = 0; i < k; i++) {
            double const weight = x[order[i]];
            if (z_[i] <= 0.0 && weight <= step * (weight - z_[i])) {
                step = weight / (weight - z_[i]), last = i;
            }
        }
        for (Index j = 0; j < data.n(); j++) blocked[j] &= REFUSED;
        for (Index i = 0; i < k; i++) {
            double const weight = x[order[i]];
            x[order[i]] = last < 0 ? z_[i] : weight + step * (z_[i] - weight);
        }
        if (last < 0) return true;
        x[order[last]] = 0.0;
        for (Index i = k - 1; i >= 0; i--) {
            if (x[order[i]] <= 0.0) drop(i);
        }
        return false;
    }

    Buffer<double> cosines_, sines_, z_, slopes_;
};

}  // namespace conepursuit
