// Active-set solution of small quadratic programmes on an updated Cholesky factor.
//
// Atoms that may have weight are called passive; C is the factor of their block of Q.
#pragma once

#include <cmath>

#include "constants.hpp"
#include "triangular.hpp"

namespace conepursuit {

class QuadraticProgram {
  public:
    QuadraticProgram(ConstMatrix Q, Vector gradient, Vector weights, Matrix C, Places order,
                     Index k, bool free_sign)
        : Q(Q), gradient(gradient), weights(weights), C(C), order(order), k(k),
          free_sign(free_sign), delta_(weights.size() + 1), cosines_(weights.size() + 1),
          sines_(weights.size() + 1), passive_(weights.size()), blocked_(weights.size()) {
        for (Index i = 0; i < k; i++) passive_[order[i]] = true;
    }

    // Minimise; an atom enters if its gradient, over the root of its diagonal entry, is below
    // minus the tolerance. Returns the number of passive atoms.
    Index solve(double tolerance) {
        Index const n = weights.size();
        for (Index atom = 0; atom < n; atom++) {
            if (!passive_[atom] && (weights[atom] != 0.0 || free_sign)) admit(atom, false);
        }
        descend();
        if (free_sign) return k;
        for (Index round = 0; round < 10 * n + 10; round++) {
            Index const entering = steepest(tolerance);
            if (entering < 0) break;
            blocked_[entering] = true;  // until an atom has entered and stayed
            if (!admit(entering, true)) continue;
            descend();
            if (passive_[entering]) blocked_.span().fill(false);
        }
        return k;
    }

  private:
    // The atom of steepest descent that may enter, -1 if none does.
    Index steepest(double tolerance) const {
        Index entering = -1;
        double least = -tolerance;
        for (Index atom = 0; atom < weights.size(); atom++) {
            if (passive_[atom] || blocked_[atom] || !(Q(atom, atom) > 0.0)) continue;
            double const slope = gradient[atom] / std::sqrt(Q(atom, atom));
            if (slope < least) entering = atom, least = slope;
        }
        return entering;
    }

    // Remove the passive atoms whose weight is not positive.
    void drop_empty() {
        for (Index i = k - 1; i >= 0; i--) {
            Index const atom = order[i];
            if (weights[atom] > 0.0) continue;
            weights[atom] = 0.0;
            passive_[atom] = false;
            remove(C, order, k, i, cosines_, sines_);
            k--;
        }
    }

    // Move the passive weights by step * delta, or until one is zero; update the gradient.
    //
    // Returns whether a weight that reached zero cut the step short. An infinite step that no
    // weight cuts short is not made. Weights of free sign cut nothing.
    bool advance(double &step) {
        Index block = -1;
        if (!free_sign) {
            for (Index i = 0; i < k; i++) {
                double const weight = weights[order[i]];
                if (delta_[i] < 0.0 && weight + step * delta_[i] < 0.0) {
                    step = -weight / delta_[i], block = i;
                }
            }
        }
        if (step == INFINITE) return false;
        for (Index i = 0; i < k; i++) {
            double const change = step * delta_[i];
            weights[order[i]] += change;
            add_multiple(change, Q[order[i]], gradient.size(), gradient);
        }
        if (block >= 0) weights[order[block]] = 0.0;
        return block >= 0;
    }

    // Minimise over the passive atoms; those that reach zero leave.
    void descend() {
        while (k > 0) {
            for (Index i = 0; i < k; i++) delta_[i] = -gradient[order[i]];
            forward_solve(C, k, delta_);
            backward_solve(C, k, delta_);
            double step = 1.0;
            if (!advance(step)) break;
            drop_empty();
        }
    }

    // Make an atom passive; false if it must stay out.
    //
    // If it depends on the passive atoms, weight is moved between it and them without a change of
    // the combination. An `entering` atom gains weight, since by its gradient this lowers a
    // penalty or frees room in a hull; another one loses the weight that it has. If a passive atom
    // reaches zero on the way it leaves, and the atom is tried again. If none does, the atom stays
    // out: it has lost all its weight or, if it is entering, could gain weight without end.
    bool admit(Index atom, bool entering) {
        double const sign = entering ? 1.0 : -1.0;
        while (!append(C, order, k, Q[atom], atom, DEPENDENT_SQUARE * double(k + 1))) {
            for (Index i = 0; i < k; i++) delta_[i] = -sign * C(k, i);
            backward_solve(C, k, delta_);
            double step = entering ? INFINITE : weights[atom];
            bool const cut = advance(step);
            if (entering && !cut) return false;
            weights[atom] += sign * step;
            add_multiple(sign * step, Q[atom], gradient.size(), gradient);
            if (!cut) {
                weights[atom] = 0.0;
                return false;
            }
            drop_empty();
        }
        passive_[atom] = true;
        k++;
        return true;
    }

    ConstMatrix Q;
    Vector gradient, weights;
    Matrix C;
    Places order;
    Index k;
    bool free_sign;
    Buffer<double> delta_, cosines_, sines_;
    Buffer<bool> passive_, blocked_;
};

// Minimise <gradient, v - w> + 1/2 <v - w, Q (v - w)> over v >= 0, or over all v.
//
// `gradient` and `weights` are those at the start and, on return, at the solution. C and `order`
// hold the factor of the first k atoms in the order, and on return that of the passive ones, whose
// number is returned; both have room for one atom more than there are.
inline Index solve(ConstMatrix Q, Vector gradient, Vector weights, Matrix C, Places order, Index k,
                   bool free_sign, double tolerance) {
    return QuadraticProgram(Q, gradient, weights, C, order, k, free_sign).solve(tolerance);
}

}  // namespace conepursuit
