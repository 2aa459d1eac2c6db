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
// them, in their order; g the slopes of all atoms; `scale` is 0 for atoms that may not enter, which
// are the passive ones and those that are idle before x has moved, and `full`, one over the norms,
// for others. u and v are work space.
struct InverseSet {
    explicit InverseSet(Index n)
        : n(n), width(padded(n)), size(width + WIDTH), H_(size, size), numbers_(8, size),
          order_(size), steep_(size), H(H_), full(numbers_[0]), c(numbers_[1]), g(numbers_[2]),
          x(numbers_[3]), z(numbers_[4]), scale(numbers_[5]), u(numbers_[6]), v(numbers_[7]),
          order(order_), steep(steep_) {}

    // Admit the steepest atoms and descend until none does, from x = 0; c must be written.
    //
    // Returns why it ended; `steps` receives the number of solves.
    Code pursue(ConstMatrix G, double tolerance, Index limit, Index max_steps, Index &steps) {
        x.fill(0.0);
        z.fill(0.0);
        for (Index j = 0; j < width; j++) scale[j] = full[j];
        k = 0, steps = 0;
        Index room = 1;
        while (true) {
            for (Index j = 0; j < width; j++) g[j] = c[j];
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
                for (Index i = 0; i < k; i++) x[i] = z[i];
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

  private:
    Table<double> H_, numbers_;
    Buffer<std::int64_t> order_, steep_;

  public:
    Matrix H;
    Vector full, c, g, x, z, scale, u, v;
    Places order, steep;

  private:
    bool all_positive() const {
        double least = INFINITE;
        const double *values = z.data();
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

    // Make the first `count` steep atoms passive, and z the solution with them.
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
            if (!(pivot > ILL_CONDITIONED * square)) continue;
            double const inverse = 1.0 / pivot;
            for (Index i = 0; i < k; i++) v[i] = inverse * u[i];
            add_products(v, u, k, H);
            for (Index i = 0; i < k; i++) {
                H(i, k) = -v[i], H(k, i) = -v[i];
                z[i] -= slope * v[i];
            }
            H(k, k) = inverse, z[k] = slope * inverse, order[k] = atom;
            k++;
        }
    }

    // Remove the passive atom at `place` from H, and make z the solution without it.
    //
    // The last passive atom takes its place in the order.
    void drop(Index place) {
        Index const last = k - 1, reach = padded(k);
        double const pivot = 1.0 / H(place, place);
        for (Index i = 0; i < k; i++) u[i] = H(place, i), v[i] = -pivot * u[i];
        finish(u, k);
        add_multiple(-z[place] * pivot, u, reach, z);
        add_products(v, u, k, H);
        for (Index i = 0; i < last; i++) H(place, i) = H(last, i);
        for (Index i = 0; i < last; i++) H(i, place) = H(last, i);
        H(place, place) = H(last, last);
        order[place] = order[last], x[place] = x[last], z[place] = z[last];
        x[last] = 0.0, z[last] = 0.0;
        k--;
    }

    // Move x to z; atoms whose weight reaches zero leave, as in `ActiveSet`. Return the steps.
    Index descend(Index settled) {
        Index steps = 0;
        while (true) {
            steps++;
            Index const before = k;
            for (Index i = k - 1; i >= 0; i--) {
                if (z[i] <= 0.0 && x[i] == 0.0) drop(i);
            }
            if (k < before) {
                if (k == settled) return steps;
                continue;
            }
            settled = -1;
            if (move()) return steps;
        }
    }

    // Move x towards z until a weight is zero; such atoms leave. Whether it got there.
    bool move() {
        double step = 1.0;
        Index blocking = -1;
        for (Index i = 0; i < k; i++) {
            if (z[i] <= 0.0 && x[i] <= step * (x[i] - z[i])) {
                step = x[i] / (x[i] - z[i]), blocking = i;
            }
        }
        for (Index i = 0; i < k; i++) x[i] = blocking < 0 ? z[i] : x[i] + step * (z[i] - x[i]);
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
