// Coordinate descent for non-negative least squares, one atom after the other.
#pragma once

#include <algorithm>

#include "../shared/arithmetic.hpp"

namespace conepursuit {

// Minimise over each weight x_j >= 0 in turn and update r = b - A x; return ||r||^2.
inline double sweep(ConstMatrix atoms, ConstVector inverse_norms, Vector x, Vector r) {
    Index const m = r.size();
    for (Index j = 0; j < x.size(); j++) {
        double const scale = inverse_norms[j] * inverse_norms[j];
        double const weight = std::max(0.0, x[j] + scale * dot(atoms[j], r, m));
        double const change = weight - x[j];
        if (change == 0.0) continue;
        x[j] = weight;
        add_multiple(-change, atoms[j], m, r);
    }
    return dot(r, r, m);
}

struct Swept {
    double square;
    Index count;
};

// Sweep until ||r||^2 <= target, or a sweep leaves more than the share `pace` of it, or `most`
// sweeps are made; return ||r||^2, and how many were made.
inline Swept sweeps(ConstMatrix atoms, ConstVector inverse_norms, Vector x, Vector r,
                    double target, double pace, Index most) {
    double square = INFINITE;
    for (Index count = 0; count < most; count++) {
        double const before = square;
        square = sweep(atoms, inverse_norms, x, r);
        if (square <= target || square > pace * before) return {square, count + 1};
    }
    return {square, most};
}

}  // namespace conepursuit
