// A lower triangular factor C of the Gram matrix of some atoms, C C' = A'A, updated in place.
//
// It is kept row by row, so that every inner loop runs over contiguous memory, with the reciprocals
// of its pivots on the diagonal, so that solving needs no division. Adding and removing an atom
// costs O(k^2).
#pragma once

#include <cmath>

#include "arithmetic.hpp"

namespace conepursuit {

// Overwrite y with C^-1 y; C has k rows.
inline void forward_solve(ConstMatrix C, Index k, Vector y) {
    for (Index i = 0; i < k; i++) y[i] = (y[i] - dot(C[i], y, i)) * C(i, i);
}

// Overwrite y with C^-T y; C has k rows.
inline void backward_solve(ConstMatrix C, Index k, Vector y) {
    for (Index i = k - 1; i >= 0; i--) {
        y[i] *= C(i, i);
        add_multiple(-y[i], C[i], i, y);
    }
}

// Make row k of the factor from the products of an atom with the others, which row k holds.
//
// `square` is the squared norm of the atom. False, and no row is added, if the squared sine of its
// angle to the others is at most `floor`. The first k entries hold C^-1 times the products anyway.
inline bool complete(Matrix C, Index k, double square, double floor) {
    Vector const row = C[k];
    forward_solve(C, k, row);
    double const pivot = square - dot(row, row, k);
    if (!(pivot > floor * square)) return false;
    row[k] = 1.0 / std::sqrt(pivot);
    return true;
}

// Add an atom, whose row of the Gram matrix is `gram`, as row k; as `complete`.
inline bool append(Matrix C, Places order, Index k, ConstVector gram, Index atom, double floor) {
    Vector const row = C[k];
    for (Index i = 0; i < k; i++) row[i] = gram[order[i]];
    order[k] = atom;
    return complete(C, k, gram[atom], floor);
}

// Delete row `place` of a factor of k rows by plane rotations.
//
// Rotation i, for place <= i < k - 1, mixes columns i and i + 1. `cosines` and `sines` receive the
// rotations; `rotate` and `rotate_rows` apply them to what else is kept with the factor.
inline void remove(Matrix C, Places order, Index k, Index place, Vector cosines, Vector sines) {
    for (Index i = place; i < k - 1; i++) {
        order[i] = order[i + 1];
        Vector const old = C[i + 1], row = C[i];
        for (Index j = 0; j < place; j++) row[j] = old[j];
        double carried = old[place];
        for (Index j = place; j < i; j++) {
            double const following = old[j + 1];
            row[j] = cosines[j] * carried + sines[j] * following;
            carried = cosines[j] * following - sines[j] * carried;
        }
        double const pivot = 1.0 / old[i + 1];
        double const length = std::sqrt(carried * carried + pivot * pivot);
        cosines[i] = carried / length;
        sines[i] = pivot / length;
        row[i] = 1.0 / length;
    }
}

// Apply the rotations of `remove` to y = C^-1 c; entry k - 1 is then outside the factor.
inline void rotate(Vector y, Index k, Index place, ConstVector cosines, ConstVector sines) {
    double carried = y[place];
    for (Index i = place; i < k - 1; i++) {
        double const following = y[i + 1];
        y[i] = cosines[i] * carried + sines[i] * following;
        carried = cosines[i] * following - sines[i] * carried;
    }
    y[k - 1] = carried;
}

// Apply the rotations of `remove` to the rows of Q; row k - 1 is then outside the basis.
inline void rotate_rows(Matrix Q, Index k, Index place, ConstVector cosines, ConstVector sines) {
    for (Index i = place; i < k - 1; i++) {
        double *upper = Q[i].data(), *lower = Q[i + 1].data();
        double const c = cosines[i], s = sines[i];
#pragma omp simd
        for (Index j = 0; j < Q.columns(); j++) {
            double const carried = upper[j], following = lower[j];
            upper[j] = c * carried + s * following;
            lower[j] = c * following - s * carried;
        }
    }
}

}  // namespace conepursuit
