// Coordinate descent for one factor of a factorisation with weighted or missing entries.
//
// For data X of shape (rows, cols) all sweeps lower, over F >= 0 and with G fixed,
//
//     f(F) = 1/2 sum_ij m_ij (x_ij - <F[:, i], G[:, j]>)^2 + l1 sum(F) + l2/2 ||F||^2,   m >= 0.
//
// An entry of weight 0 is missing. The other factor is updated by the same functions from
// transposed data, with F and G swapped. Rows of X share no unknowns, and each step minimises f
// over one entry of F. A step needs the pull of the data, <G[r], m_i * (x_i - fit)>, which is
// computed in one of two ways:
//
// - from the weighted residual of the row, which is updated after each step: O(cols) for a step;
// - from the row's own Gram matrix G diag(m_i) G': O(cols k^2 / 2) once, and O(k) for a step.
//
// The Gram matrices of many rows are one product of matrices, of m with the products of two rows of
// G, which runs at the full speed of the machine. The second way pays for few components or many
// sweeps.
#pragma once

#include "../shared/constants.hpp"
#include "greedy.hpp"

namespace conepursuit::factorization::weighted {

// With more components per sweep than this, rows are updated by residuals, else by Gram matrices.
// Above it the Gram matrices cost more, as measured.
constexpr Index COMPONENTS = 16;

// Numbers in each array of fits, Gram matrices or products of a tile of rows: about 8 MB.
constexpr Index TILE = Index(1) << 20;

// The most products of two rows of G that one matrix product multiplies by the weights.
constexpr Index PANEL = 128;

// The fewest rows in a tile; a product of matrices with fewer is slow.
constexpr Index LEAST_ROWS = 8;

// Penalties of F, and how often each entry of F is updated.
struct Terms {
    double l1, l2;
    Index sweeps;
};

// The value >= 0 of one entry of F, now `weight`, that minimises f.
//
// Where f has no curvature along the entry (below `SMALLEST`), the entry becomes 0 if its penalty
// exceeds the pull of the data, and stays as it is otherwise. A minimiser is at most
// `LARGEST_SQUARE`.
inline double minimiser(double weight, double pull, double curvature, const Terms &terms) {
    double const total = curvature + terms.l2;
    double const best = (fused(curvature, weight, pull) - terms.l1) / total;
    double const bounded = std::min(std::max(0.0, best), LARGEST_SQUARE);
    double const flat = pull < terms.l1 + terms.l2 * weight ? 0.0 : weight;
    return total < SMALLEST ? flat : bounded;
}

// Subtract step * a * b from `out`, entry by entry.
inline void retreat(ConstVector a, ConstVector b, double step, Vector out) {
    const double *const p = a.data(), *const q = b.data();
    double *const to = out.data();
    check(out.size(), a.size() + 1);
    check(out.size(), b.size() + 1);
#pragma omp simd
    for (Index j = 0; j < out.size(); j++) to[j] = fused(-step, p[j] * q[j], to[j]);
}

// Overwrite the fit with the weighted residual m (x - fit).
inline void weigh_residual(ConstVector x, ConstVector m, Vector fit) {
    const double *const p = x.data(), *const q = m.data();
    double *const to = fit.data();
#pragma omp simd
    for (Index j = 0; j < fit.size(); j++) to[j] = q[j] * (p[j] - to[j]);
}

// Make sweeps over the entries f of one row, in place, and update its weighted residual.
inline void descend(ConstMatrix atoms, ConstVector m, Vector residual, ConstVector curvatures,
                    Vector f, const Terms &terms) {
    for (Index sweep = 0; sweep < terms.sweeps; sweep++) {
        for (Index r = 0; r < f.size(); r++) {
            double const pull = dot(atoms[r], residual, residual.size());
            double const best = minimiser(f[r], pull, curvatures[r], terms);
            if (best != f[r]) {
                retreat(atoms[r], m, best - f[r], residual);
                f[r] = best;
            }
        }
    }
}

// Rows of a tile for `cols` columns of data and k components.
inline Index tile_height(Index cols, Index k) {
    return std::max(LEAST_ROWS, TILE / std::max({Index(1), cols, k * (k + 1) / 2}));
}

// Write A' for columns of A from `first` on, as many as `out` has rows.
inline void transpose_some(ConstMatrix A, Index first, Matrix out) {
    for (Index r = 0; r < A.rows(); r++)
        for (Index i = 0; i < out.rows(); i++) out(i, r) = A(r, first + i);
}

// Make sweeps over F by the weighted residual of each row.
inline void sweep_by_residuals(ConstMatrix X, ConstMatrix M, Matrix F, ConstMatrix G,
                               const Terms &terms) {
    Index const k = F.rows(), rows = X.rows(), cols = X.columns();
    Index const height = std::min(tile_height(cols, k), rows);
    Panels components(k, cols), squares(cols, k);
    Table<double> squared(k, cols), fits(height, cols), curvatures(height, k), weights(height, k);
    for (Index r = 0; r < k; r++)
        for (Index j = 0; j < cols; j++) squared(r, j) = G(r, j) * G(r, j);
    components.pack(G), squares.pack_transposed(squared);
    for (Index start = 0; start < rows; start += height) {
        Index const count = std::min(height, rows - start);
        Matrix const own = rows_of(weights.grid(), 0, count);
        transpose_some(F, start, own);
        multiply(own, components, rows_of(fits.grid(), 0, count));
        multiply(rows_of(M, start, count), squares, rows_of(curvatures.grid(), 0, count));
        for (Index i = 0; i < count; i++) {
            weigh_residual(X[start + i], M[start + i], fits[i]);
            descend(G, M[start + i], fits[i], curvatures[i], own[i], terms);
            for (Index r = 0; r < k; r++) F(r, start + i) = own(i, r);
        }
    }
}

// The index of the pair r <= s among those of k components, sorted by r, then s.
inline Index place(Index k, Index r, Index s) { return r * k - r * (r - 1) / 2 + s - r; }

// Write sum_j m_ij G_rj G_sj for all pairs r <= s and rows i of the tile, of shape (pairs, rows).
//
// `across` is the tile of M, transposed; `products` is work space for some products of rows of G.
inline void weighted_grams(const Panels &across, ConstMatrix G, Matrix products, Matrix grams) {
    Index const k = G.rows(), cols = G.columns();
    Index first = 0, count = 0;
    for (Index r = 0; r < k; r++) {
        for (Index s = r; s < k; s++) {
            const double *const p = G[r].data(), *const q = G[s].data();
            double *const to = products[count++].data();
#pragma omp simd
            for (Index j = 0; j < cols; j++) to[j] = p[j] * q[j];
            if (count == products.rows() || r == k - 1) {
                multiply(rows_of(products, 0, count), across, rows_of(grams, first, count));
                first += count;
                count = 0;
            }
        }
    }
}

// Update the pulls of all rows of a tile after a change of component r.
inline void follow(ConstMatrix grams, Index r, ConstVector change, Matrix pulls) {
    Index const k = pulls.rows();
    for (Index s = 0; s < k; s++)
        retreat(grams[place(k, std::min(r, s), std::max(r, s))], change, 1.0, pulls[s]);
}

// Minimise over component r of all rows of a tile; `change` receives what is added to its weights.
inline void update_component(ConstVector curvatures, ConstVector pulls, const Terms &terms,
                             Vector f, Vector change) {
    const double *const curvature = curvatures.data(), *const pull = pulls.data();
    double *const weight = f.data(), *const moved = change.data();
#pragma omp simd
    for (Index i = 0; i < f.size(); i++) {
        double const best = minimiser(weight[i], pull[i], curvature[i], terms);
        moved[i] = best - weight[i];
        weight[i] = best;
    }
}

// Make sweeps over the rows of a tile, from its Gram matrices and the pulls at F = 0, which end as
// the pulls at the new weights. The weights are columns of F from `start` on.
inline void descend_together(ConstMatrix grams, Matrix pulls, Matrix F, Index start,
                             const Terms &terms, Vector change) {
    Index const k = F.rows(), count = change.size();
    for (Index r = 0; r < k; r++) follow(grams, r, F[r].part(start, count), pulls);
    for (Index sweep = 0; sweep < terms.sweeps; sweep++) {
        for (Index r = 0; r < k; r++) {
            Vector const f = F[r].part(start, count);
            update_component(grams[place(k, r, r)], pulls[r], terms, f, change);
            follow(grams, r, change, pulls);
        }
    }
}

// Make sweeps over F by the Gram matrix of each row; a component moves in all rows of a tile at
// once.
inline void sweep_by_grams(ConstMatrix X, ConstMatrix M, Matrix F, ConstMatrix G,
                           const Terms &terms) {
    Index const k = F.rows(), rows = X.rows(), cols = X.columns(), pairs = k * (k + 1) / 2;
    Index const height = std::min(tile_height(cols, k), rows);
    Index const depth = std::max(LEAST_ROWS, TILE / std::max<Index>(1, cols));
    Table<double> products(std::min({pairs, PANEL, depth}), cols), weighted(height, cols);
    Buffer<double> gram_memory(pairs * height), pull_memory(k * height), change(height);
    for (Index start = 0; start < rows; start += height) {
        Index const count = std::min(height, rows - start);
        Matrix const grams(gram_memory.span().data(), pairs, count);
        Matrix const pulls(pull_memory.span().data(), k, count);
        Panels across(cols, count);
        across.pack_transposed(rows_of(M, start, count));
        weighted_grams(across, G, products, grams);
        for (Index i = 0; i < count; i++)
            for (Index j = 0; j < cols; j++) weighted(i, j) = M(start + i, j) * X(start + i, j);
        across.pack_transposed(rows_of(weighted.grid(), 0, count));
        multiply(G, across, pulls);
        descend_together(grams, pulls, F, start, terms, change.span().part(0, count));
    }
}

// Make sweeps over F, in place, for dense data.
//
// X and M, data and weights, have the shape (rows, cols); where the weight is 0, any finite number
// will do. F, of k x rows, is updated, and G, of k x cols, is the other factor.
inline void sweep_weighted(ConstMatrix X, ConstMatrix M, Matrix F, ConstMatrix G,
                           const Terms &terms) {
    if (F.rows() > COMPONENTS * terms.sweeps) {
        sweep_by_residuals(X, M, F, G, terms);
    } else {
        sweep_by_grams(X, M, F, G, terms);
    }
}

// The penalties of F.
inline double cost(ConstMatrix F, double l1, double l2) {
    ConstVector const all(F.data(), F.rows() * F.columns());
    return l1 * sum(all) + 0.5 * l2 * dot(all, all, all.size());
}

// f(F) for dense data, from the residual.
inline double weighted_value(ConstMatrix X, ConstMatrix M, ConstMatrix F, ConstMatrix G, double l1,
                             double l2) {
    Index const k = F.rows(), rows = X.rows(), cols = X.columns();
    Index const height = std::min(tile_height(cols, k), rows);
    Panels components(k, cols);
    components.pack(G);
    Table<double> fits(height, cols), weights(height, k);
    double total = 0.0;
    for (Index start = 0; start < rows; start += height) {
        Index const count = std::min(height, rows - start);
        transpose_some(F, start, rows_of(weights.grid(), 0, count));
        multiply(rows_of(weights.grid(), 0, count), components, rows_of(fits.grid(), 0, count));
        for (Index i = 0; i < count; i++) {
            const double *const x = X[start + i].data(), *const m = M[start + i].data();
            const double *const fit = fits[i].data();
            double row = 0.0;
#pragma omp simd reduction(+ : row)
            for (Index j = 0; j < cols; j++) {
                double const rest = x[j] - fit[j];
                row = fused(m[j] * rest, rest, row);
            }
            total += 0.5 * row;
        }
    }
    return total + cost(F, l1, l2);
}

}  // namespace conepursuit::factorization::weighted
