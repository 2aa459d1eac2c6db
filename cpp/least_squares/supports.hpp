// The table of all supports of at most eight atoms.
//
// For each support S the table holds the matrix M that takes c = A'b to the weights of the atoms in
// S and the slopes of those outside. S is the support of the solution if the entries of M c for its
// own atoms, and no others, are positive; if not, the atoms with positive entries are the next S.
// An entry counts as positive if it is above its rounding. The weight of an atom in S, and its
// slope with S less that atom, differ by a positive factor, and so do their roundings: both give
// the same answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../shared/constants.hpp"
#include "../shared/triangular.hpp"

namespace conepursuit {

// Squared sine of the angle between an atom of a support and those before it. If it is below this
// for any atom, the support is left to kernels that correct weights by the residual; above, the
// table is accurate enough.
constexpr double DELICATE = 1e-3;

// Places of the bounds on the functional of a support that `bound_functional` writes.
enum Bound : Index { ERROR, FIRM, TOP, LOWEST, SQUARE };
static_assert(SQUARE + 1 == BOUNDS);

// The table: for each support the rows of M, with the rounding of M c for a target of norm 1 in one
// more column; constants that are added to M c, and their rounding, zero unless the sum of weights
// is given (sums.hpp); A't for the t with <t, a> = ||a|| on S; bounds on that; the atoms of S that
// are independent of those before them; and whether S needs a more accurate kernel.
template <class T>
struct Supports {
    using Bits = std::conditional_t<std::is_const_v<T>, const std::uint64_t, std::uint64_t>;
    using Flag = std::conditional_t<std::is_const_v<T>, const bool, bool>;
    T *M;  // of shape (supports, 8, 9)
    Grid<T> shift, least, functional, bounds;
    Span<Bits> repaired;
    Span<Flag> delicate;

    T *row(Index support, Index atom) const {
        return M + (support * FEW_ATOMS + atom) * (FEW_ATOMS + 1);
    }
};

// Write the products of the atoms with t = sum_i z_i a_i, and bounds on them.
//
// ERROR bounds the rounding of <t, a> / ||a||. FIRM is the least of these numbers over the support
// minus ERROR, TOP the largest plus ERROR, LOWEST the least over the other atoms minus ERROR, and
// SQUARE is ||t||^2 plus its error.
inline void bound_functional(ConstMatrix G, ConstVector norms, ConstVector z, Index support,
                             Index m, Vector products, Vector bounds) {
    Index const n = norms.size();
    double size = 0.0, square = 0.0;
    for (Index i = 0; i < n; i++) size += std::fabs(z[i]) * norms[i];
    double const error = product_rounding(m + 2 * FEW_ATOMS) * size;
    bounds[ERROR] = error, bounds[FIRM] = 1.0, bounds[TOP] = 1.0, bounds[LOWEST] = INFINITE;
    for (Index j = 0; j < n; j++) {
        products[j] = 0.0;
        for (Index i = 0; i < n; i++) products[j] += z[i] * G(j, i);
        square += z[j] * products[j];
        if (!(norms[j] > 0.0)) continue;
        double const unit = products[j] / norms[j];
        if (support >> j & 1) {
            bounds[FIRM] = std::min(bounds[FIRM], unit - error);
            bounds[TOP] = std::max(bounds[TOP], unit + error);
        } else {
            bounds[LOWEST] = std::min(bounds[LOWEST], unit - error);
        }
    }
    bounds[SQUARE] = 1.01 * std::max(square, 0.0) + error * size;
}

// Fill the table for n atoms with the Gram matrix G of m rows; it must hold zeros.
class Tabulator {
  public:
    Tabulator(ConstMatrix G, Index n, Index m, Supports<double> out)
        : G(G), n(n), m(m), out(out), norms_(n), z_(n), column_(n + 1), C_(n + 1, n + 1),
          order_(n + 1) {
        for (Index atom = 0; atom < n; atom++) norms_[atom] = std::sqrt(G(atom, atom));
    }

    void fill() {
        for (Index support = 0; support < Index(1) << n; support++) {
            if (factor(support) != support) continue;
            invert(support);
            Vector const bounds = out.bounds[support];
            bound_functional(G, norms_, z_, support, m, out.functional[support], bounds);
            out.delicate[support] |= !(bounds[FIRM] > 0.5);
        }
    }

  private:
    // Make the factor of the atoms of a support that are independent; return those, as bits.
    Index factor(Index support) {
        Index part = 0;
        k = 0;
        for (Index atom = 0; atom < n; atom++) {
            if (!(support >> atom & 1)) continue;
            if (!append(C_, order_, k, G[atom], atom, ILL_CONDITIONED)) continue;
            part |= Index(1) << atom;
            out.delicate[support] |= DELICATE * C_(k, k) * C_(k, k) * G(atom, atom) > 1.0;
            k++;
        }
        out.repaired[support] = std::uint64_t(part);
        return part;
    }

    // Write M of a support, from the inverse of its Gram matrix, and z, the weights of t.
    void invert(Index support) {
        double const noise = expected_rounding(m);
        z_.span().fill(0.0);
        for (Index i = 0; i < k; i++) {
            for (Index p = 0; p < k; p++) column_[p] = p == i ? 1.0 : 0.0;
            forward_solve(C_, k, column_);
            backward_solve(C_, k, column_);
            for (Index p = 0; p < k; p++) {
                out.row(support, order_[p])[order_[i]] = column_[p];
                z_[order_[p]] += column_[p] * norms_[order_[i]];
            }
            for (Index atom = 0; atom < n; atom++) {
                if (support >> atom & 1) continue;
                double &entry = out.row(support, atom)[order_[i]];
                for (Index p = 0; p < k; p++) entry -= G(atom, order_[p]) * column_[p];
            }
        }
        for (Index atom = 0; atom < n; atom++) {
            double *row = out.row(support, atom);
            if (!(support >> atom & 1)) row[atom] = 1.0;
            for (Index i = 0; i < n; i++) {
                row[FEW_ATOMS] += noise * std::fabs(row[i]) * norms_[i];
            }
        }
    }

    ConstMatrix G;
    Index n, m, k = 0;
    Supports<double> out;
    Buffer<double> norms_, z_, column_;
    Table<double> C_;
    Buffer<std::int64_t> order_;
};

}  // namespace conepursuit
