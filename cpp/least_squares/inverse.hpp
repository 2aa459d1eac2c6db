// The active set for one of many targets, with an explicit inverse.
//
// The inverse H of the Gram matrix of the passive atoms, those that may have weight, is kept:
// adding and removing an atom are then updates of rank one, which run faster than solves with short
// triangles. Rows of H and of the Gram matrix are padded with zeros, and so are the vectors.
#pragma once

#include <algorithm>

#include "../shared/constants.hpp"
#include "../shared/lanes.hpp"

namespace conepursuit {

// Atoms enter with the steepest one if their slopes are at least this share of its; others wait.
constexpr double ENTERING_SHARE = 0.7;

// The state of one target; it is made once for many.
//
// `order` are the passive atoms, x their weights and z the weights of the unconstrained solution on
// them, in their order; g the slopes of all atoms, less mu; `scale` is 0 for atoms that may not
// enter, which are the passive ones and those that are idle before x has moved, and `full`, one
// over the norms, for others. u and v are work space.
//
// x moves to `aim`. That is z, with mu = 0. Where the weights must sum to s, it is the solution
// with that sum, z - mu w with w = H 1, and mu the slope of all passive atoms there.
struct InverseSet {
    explicit InverseSet(Index n)
        : n(n), width(padded(n)), size(width + WIDTH), H_(size, size), numbers_(10, size),
          order_(size), steep_(size), H(H_), full(numbers_[0]), c(numbers_[1]), g(numbers_[2]),
          x(numbers_[3]), z(numbers_[4]), scale(numbers_[5]), u(numbers_[6]), v(numbers_[7]),
          w(numbers_[8]), aim(z), order(order_), steep(steep_) {}

    // Begin with x = 0, without a condition on the sum.
    void begin() {
        x.fill(0.0);
        z.fill(0.0);
        w.fill(0.0);
        for (Index j = 0; j < width; j++) scale[j] = full[j];
        k = 0, mu = 0.0, s = 0.0, aim = z;
    }

    // Ask for the sum `whole` from here on, of an x that is zero: the atom that fits best gets it.
    void begin_with_sum(ConstMatrix G, double whole) {
        s = whole, aim = numbers_[9];
        steep[0] = best_alone(G);
        admit(G, 1);
        x[0] = aim[0];
    }

    // Ask for the sum `whole` from here on, of an x whose sum is larger; return the solves.
    Index reduce_sum(double whole) {
        s = whole, aim = numbers_[9];
        double before = 0.0;
        for (Index i = 0; i < k; i++) before += x[i], v[i] = 1.0;
        for (Index i = 0; i < k; i++) x[i] *= s / before;
        finish(v, k);
        multiply_symmetric(H, v, k, w);
        finish(w, k);
        take_aim();
        return descend(-1);
    }

    // Admit the steepest atoms and descend until none does; c must be written.
    //
    // Returns why it ended; the number of solves is added to `steps`.
    Code pursue(ConstMatrix G, double tolerance, Index limit, Index max_steps, Index &steps) {
        Index room = 1;
        while (true) {
            for (Index j = 0; j < width; j++) g[j] = c[j] - mu;
            subtract_rows(G, order, x, k, width, u, g);
            double const steepest = price(g, scale);
            Index const before = k;
            Index count = 0;
            bool const descending = steepest > tolerance;
            if (descending && k < limit && steps < max_steps) {
                count = locate(room == 1 ? steepest : ENTERING_SHARE * steepest, room);
                admit(G, count);
            }
            if (k == before) {
                if (count > 0) return STALLED;
                if (!descending) return OPTIMAL;
                return k >= limit ? MAX_ATOMS : MAX_STEPS;
            }
            Index const entered = k;
            if (all_positive()) {
                for (Index i = 0; i < k; i++) x[i] = aim[i];
                steps++;
            } else {
                steps += descend(before);
            }
            if (limit >= n) room = k == entered ? 2 * room : (room + 1) / 2;
        }
    }

    // Write the slopes as u = g * factors; return the largest.
    double price(ConstVector slopes, ConstVector factors) {
        Eight top;
        for (Index j = 0; j < width; j += WIDTH) {
            Eight const part = Eight::load(slopes.data() + j) * Eight::load(factors.data() + j);
            part.store(u.data() + j);
            top = larger(top, part);
        }
        return top.largest();
    }

    Index n, width, size, k = 0;
    double s = 0.0, mu = 0.0;

  private:
    Table<double> H_, numbers_;
    Buffer<std::int64_t> order_, steep_;

  public:
    Matrix H;
    Vector full, c, g, x, z, scale, u, v, w, aim;
    Places order, steep;

  private:
    // The atom with the least 1/2 ||s a - b||^2.
    Index best_alone(ConstMatrix G) const {
        Index best = 0;
        double most = -INFINITE;
        for (Index j = 0; j < n; j++) {
            double const gain = c[j] - 0.5 * s * G(j, j);
            if (gain > most) best = j, most = gain;
        }
        return best;
    }

    // Write mu and `aim` for the passive atoms, where a sum is given.
    void take_aim() {
        if (!(s > 0.0) || k == 0) return;
        double whole = -s, share = 0.0;
        for (Index i = 0; i < k; i++) whole += z[i], share += w[i];
        mu = whole / share;
        for (Index i = 0; i < k; i++) aim[i] = z[i] - mu * w[i];
    }

    bool all_positive() const {
        double least = INFINITE;
        const double *values = aim.data();
#pragma omp simd reduction(min : least)
        for (Index i = 0; i < k; i++) least = std::min(least, values[i]);
        return least > 0.0;
    }

    // Write the atoms whose slopes are at least `cut` as `steep`; how many to use, at most `room`.
    Index locate(double cut, Index room) {
        Index count = 0;
        for (Index j = 0; j < width; j += WIDTH) {
            unsigned found = at_least(Eight::load(u.data() + j), cut);
            for (; found != 0; found &= found - 1) steep[count++] = j + std::countr_zero(found);
        }
        return std::min(count, room);
    }

    // Make the first `count` steep atoms passive, and z and `aim` the solutions with them.
    //
    // Each gets the scale 0, so that it cannot enter again before x has moved. One that depends on
    // the passive atoms stays out. If u are the weights of its projection on them, H grows by a
    // multiple of (-u, 1)(-u, 1)'.
    void admit(ConstMatrix G, Index count) {
        for (Index place = 0; place < count; place++) {
            Index const atom = steep[place], reach = padded(k);
            scale[atom] = 0.0;
            for (Index i = 0; i < k; i++) v[i] = G(atom, order[i]);
            finish(v, k);
            multiply_symmetric(H, v, k, u);
            finish(u, k);
            double const square = G(atom, atom);
            double const pivot = square - padded_dot(u, v, reach);
            double const slope = c[atom] - padded_dot(z, v, reach);
            double const share = s > 0.0 ? 1.0 - padded_dot(w, v, reach) : 0.0;
            if (!(pivot > ILL_CONDITIONED * square)) continue;
            double const inverse = 1.0 / pivot;
            for (Index i = 0; i < k; i++) v[i] = inverse * u[i];
            add_products(v, u, k, H);
            for (Index i = 0; i < k; i++) {
                H(i, k) = -v[i], H(k, i) = -v[i];
                z[i] -= slope * v[i], w[i] -= share * v[i];
            }
            H(k, k) = inverse, z[k] = slope * inverse, w[k] = share * inverse, order[k] = atom;
            k++;
        }
        take_aim();
    }

    // Remove the passive atom at `place` from H, and make z and `aim` the solutions without it.
    //
    // The last passive atom takes its place in the order.
    void drop(Index place) {
        Index const last = k - 1, reach = padded(k);
        double const pivot = 1.0 / H(place, place);
        for (Index i = 0; i < k; i++) u[i] = H(place, i), v[i] = -pivot * u[i];
        finish(u, k);
        add_multiple(-z[place] * pivot, u, reach, z);
        add_multiple(-w[place] * pivot, u, reach, w);
        add_products(v, u, k, H);
        for (Index i = 0; i < last; i++) H(place, i) = H(last, i);
        for (Index i = 0; i < last; i++) H(i, place) = H(last, i);
        H(place, place) = H(last, last);
        order[place] = order[last], x[place] = x[last], z[place] = z[last], w[place] = w[last];
        x[last] = 0.0, z[last] = 0.0, w[last] = 0.0;
        k--;
        take_aim();
    }

    // Move x to `aim`; atoms whose weight reaches zero leave, as in `ActiveSet`. Return the steps.
    Index descend(Index settled) {
        Index steps = 0;
        while (true) {
            steps++;
            Index const before = k;
            for (Index i = k - 1; i >= 0; i--) {
                if (aim[i] <= 0.0 && x[i] == 0.0) drop(i);
            }
            if (k < before) {
                if (k == settled) return steps;
                continue;
            }
            settled = -1;
            if (move()) return steps;
        }
    }

    // Move x towards `aim` until a weight is zero; such atoms leave. Whether it got there.
    bool move() {
        double step = 1.0;
        Index blocking = -1;
        for (Index i = 0; i < k; i++) {
            if (aim[i] <= 0.0 && x[i] <= step * (x[i] - aim[i])) {
                step = x[i] / (x[i] - aim[i]), blocking = i;
            }
        }
        for (Index i = 0; i < k; i++) {
            x[i] = blocking < 0 ? aim[i] : x[i] + step * (aim[i] - x[i]);
        }
        for (Index j = 0; j < n; j++) scale[j] = full[j];
        for (Index i = 0; i < k; i++) scale[order[i]] = 0.0;
        if (blocking < 0) return true;
        x[blocking] = 0.0;
        for (Index i = k - 1; i >= 0; i--) {
            if (x[i] > 0.0) continue;
            scale[order[i]] = full[order[i]];
            drop(i);
        }
        return false;
    }
};

}  // namespace conepursuit
