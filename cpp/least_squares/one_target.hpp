// The fit of one target by the active set: its answer is checked on the data, and certified.
#pragma once

#include <cmath>
#include <memory>

#include "../shared/passes.hpp"
#include "active_set.hpp"
#include "certificate.hpp"
#include "refinement.hpp"

namespace conepursuit {

// Share of ||b|| below which a residual counts as nearly zero.
//
// Atoms that would make the fit exact may then have slopes that are lost in the rounding of b. So a
// fit from inner products is made again by QR, unless the residual is rounding, and the residual is
// computed in twice the precision. With a longer residual, neither is done.
constexpr double NEARLY_EXACT = 1e-6;

// What a fit leaves behind: r = b - A x and g = A'r, and work space.
struct Answer {
    Vector r, g, f, low, dx;
};

// Compute the residual and correct x by it; false if a weight was not positive and is now 0.
//
// With an orthonormal basis r is corrected as well, and accurate to its own last digits, not only
// to those of b.
inline bool polish(ActiveSet &set, const Answer &out) {
    const Data &data = set.data;
    set.residual(out.r);
    if (set.orthogonal()) {
        refine(data.atoms, data.b, set.x, out.r, set.order, set.k, set.C, set.Q, out.f, out.low,
               out.dx);
    } else {
        for (Index i = 0; i < set.k; i++) {
            out.dx[i] = dot(data.atoms[set.order[i]], out.r, data.m());
        }
        forward_solve(set.C, set.k, out.dx);
        backward_solve(set.C, set.k, out.dx);
        for (Index i = 0; i < set.k; i++) set.x[set.order[i]] += out.dx[i];
    }
    bool positive = true;
    for (Index i = 0; i < set.k; i++) {
        double &weight = set.x[set.order[i]];
        if (weight <= 0.0) weight = 0.0, positive = false;
    }
    return positive;
}

// Whether no atom descends and the slopes of the passive ones are zero, up to rounding.
//
// g is A'r, computed from the data, and `noise` its expected rounding for a unit atom. If
// `partial`, only the passive atoms are checked.
inline bool holds(const ActiveSet &set, ConstVector g, double noise, bool partial) {
    for (Index j = 0; j < g.size(); j++) {
        double const slope = g[j] * set.data.inverse_norms[j];
        if (set.inside[j] ? std::fabs(slope) > LEVEL_ROUNDINGS * noise
                          : !partial && slope > DESCENT_ROUNDINGS * noise) {
            return false;
        }
    }
    return true;
}

// Pursue until `polish` leaves all weights positive, and check the answer on the data.
//
// The atoms that have weight at the start become passive; one that depends on those before it
// loses its weight. The code is STALLED if the answer fails the check, or if its residual is nearly
// zero without QR.
inline Ended pursue_and_polish(ActiveSet &set, Index limit, Index max_steps, const Answer &out) {
    const Data &data = set.data;
    for (Index j = 0; j < data.n(); j++) {
        if (set.x[j] > 0.0 && !set.inside[j] && !set.admit(j)) set.x[j] = 0.0;
    }
    set.blocked.span().fill(0);
    Ended ended{STALLED, 0};
    for (int round = 0; round < 5; round++) {
        Ended const now = set.pursue(limit, max_steps - ended.steps, out.r, out.g);
        ended = {now.code, ended.steps + now.steps};
        if (polish(set, out)) break;
        for (Index i = set.k - 1; i >= 0; i--) {
            if (set.x[set.order[i]] == 0.0) set.drop(i);
        }
    }
    if (set.orthogonal()) {
        accurate_residual(data.atoms, data.b, {}, set.x, set.order, set.k, out.r, out.low);
    } else {
        set.residual(out.r);
    }
    multiply_all(data.atoms, out.r, out.g);
    double const noise = set.rounding();
    if (ended.code == STALLED && set.orthogonal()) {
        ended.code = OPTIMAL;  // an atom that QR refuses is a combination of others
    }
    if (ended.code != MAX_STEPS && !holds(set, out.g, noise, ended.code == MAX_ATOMS)) {
        ended.code = STALLED;
    }
    if (ended.code == OPTIMAL && !set.orthogonal() && set.k < data.rank()) {
        double const left = std::sqrt(dot(out.r, out.r, data.m()));
        double const whole = std::sqrt(dot(data.b, data.b, data.m()));
        if (noise < left && left < NEARLY_EXACT * whole) ended.code = STALLED;
    }
    return ended;
}

// Why a fit ended, how many atoms are passive, and whether QR was needed.
struct Fitted {
    Ended ended;
    Index k;
    bool orthogonal;
};

// Minimise ||A x - b|| over x >= 0, on the Gram matrix if it can be trusted, or by QR.
//
// x is the start, and on return the solution. C, `order` and y hold the factor of the first k atoms
// in the order. p receives b minus its projection on the basis, if QR was needed; `orthogonal` says
// to begin with QR. At most `limit` atoms get weight, and `max_steps` solves are made.
inline Fitted fit(const Data &data, Vector x, Matrix C, Places order, Vector y, Index k, Vector p,
                  const Answer &out, bool orthogonal, Index limit, Index max_steps) {
    ActiveSet set(data, C, order, y, x, p);
    Index steps = 0;
    if (!orthogonal) {
        set.resume(k);
        Ended const ended = pursue_and_polish(set, limit, max_steps, out);
        if (ended.code != STALLED) return {ended, set.k, false};
        steps = ended.steps;
    }
    Table<double> basis(data.rank() + 1, data.m());
    set.restart(basis);
    Ended const ended = pursue_and_polish(set, limit, max_steps - steps, out);
    return {{ended.code, steps + ended.steps}, set.k, true};
}

// A bound on the distance of r from b - A x.
//
// r is `accurate` if it was computed in twice the precision. If it was not and is nearly zero, it
// is computed again in that way, and g = A'r with it.
inline double residual_error(const Data &data, ConstVector x, ConstPlaces order, Index k,
                             ConstVector norms, bool accurate, double inexact, const Answer &out) {
    Index const m = data.m();
    double size = std::sqrt(dot(data.b, data.b, m));
    for (Index i = 0; i < k; i++) size += x[order[i]] * norms[order[i]];
    if (k == 0) return 0.0;
    if (!accurate) {
        double const nearly = NEARLY_EXACT * NEARLY_EXACT * dot(data.b, data.b, m);
        if (dot(out.r, out.r, m) > nearly) return product_rounding(k) * size;
        accurate_residual(data.atoms, data.b, {}, x, order, k, out.r, out.low);
        multiply_all(data.atoms, out.r, out.g);
    }
    double const length = std::sqrt(dot(out.r, out.r, m));
    return 1.02 * UNIT * length + (doubled_rounding(k) + inexact) * size;
}

// What is returned of one target.
struct Result {
    double rnorm = 0.0;
    Gap gap = {0.0, false};
    Ended ended = {IRREGULAR, 0};
};

// Fit one target on all atoms from a start x, which becomes the solution, and certify it.
//
// G is the Gram matrix, or empty; `inexact` the relative error of the entries of atoms and b. g
// receives A'(A x - b). The code is IRREGULAR if squares of the data overflow or underflow.
inline Result fit_target(ConstMatrix atoms, ConstVector b, ConstMatrix G, Vector x, Vector g,
                         double inexact, Index limit, Index max_steps) {
    Index const n = atoms.rows(), m = atoms.columns(), size = std::min(n, m) + 1;
    Table<double> of_atoms(4, n), of_rows(4, m), C(size, size);
    Vector const c = of_atoms[0], norms = of_atoms[1], inverse = of_atoms[2], sums = of_atoms[3];
    Buffer<double> y(size), dx(size);
    Buffer<std::int64_t> order(size);
    bool regular = in_range(dot(b, b, m), b);
    for (Index j = 0; j < n; j++) {
        Moments const found = moments(atoms[j].data(), b);
        c[j] = found.product, sums[j] = found.sum;
        regular &= in_range(found.square, atoms[j]);
        norms[j] = std::sqrt(found.square);
        inverse[j] = found.square > 0.0 ? 1.0 / norms[j] : 0.0;
    }
    if (!regular) return {};
    Data const data{atoms, b, c, inverse, G};
    Answer const out{of_rows[0], g, of_rows[1], of_rows[2], dx};
    Fitted const fitted =
        fit(data, x, C, order, y, 0, of_rows[3], out, false, limit, max_steps);
    double const distance = residual_error(data, x, order, fitted.k, norms, fitted.orthogonal,
                                           inexact, out);
    Certifier certifier(atoms, norms, sums);
    Gap const gap = certifier.certify(b, x, order, fitted.k, C, out.r, distance, inexact, g, dx);
    for (Index j = 0; j < n; j++) g[j] = -g[j];
    return {std::sqrt(dot(out.r, out.r, m)), gap, fitted.ended};
}

}  // namespace conepursuit
