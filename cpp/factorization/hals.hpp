// Coordinate descent on one factor of a least-squares factorisation, and entries of a product.
//
// A factor is stored with one component per row, so that the loops over samples run over contiguous
// memory: X is approximated by F'G.
#pragma once

#include "product.hpp"

namespace conepursuit::factorization {

// Samples whose weights stay in the nearest cache through all sweeps, while the sums for one
// component stay in registers. Twice as many do not fit the registers; half as many leave the
// multipliers waiting for each other.
constexpr Index BLOCK = 32;

// Minimise over component r for a block of samples.
//
// `row` and `aim` are row r of the Gram matrix and of the target, `tile` holds all components;
// row[r] > 0. Afterwards row r of the tile is the minimiser, given the others, over weights >= 0.
inline void descend_block(ConstVector row, ConstVector aim, Matrix tile, Index r) {
    double rest[BLOCK];
    for (Index c = 0; c < BLOCK; c++) rest[c] = aim[c];
    const double *weights = tile.data();
    for (Index s = 0; s < tile.rows(); s++, weights += BLOCK) {
        double const product = -row[s];
#pragma omp simd
        for (Index c = 0; c < BLOCK; c++) rest[c] = fused(product, weights[c], rest[c]);
    }
    double const scale = 1.0 / row[r];
    double *const own = tile[r].data();
#pragma omp simd
    for (Index c = 0; c < BLOCK; c++) own[c] = std::max(0.0, fused(rest[c], scale, own[c]));
}

// Minimise 1/2 <F, gram F> - <target, F> over F >= 0 by cyclic coordinate descent, in place.
//
// `gram`, of k x k, is G G' with the weight of a squared penalty on its diagonal; `target`, of
// k x n, is G X' less the weight of a linear penalty. Every component is updated `sweeps` times;
// each update is exact, so that the function never rises. Where the diagonal of `gram` is 0,
// a component stays.
inline void hals(ConstMatrix gram, ConstMatrix target, Matrix F, Index sweeps) {
    Index const k = F.rows(), n = F.columns();
    Table<double> tile(k, BLOCK), aim(k, BLOCK);
    for (Index start = 0; start < n; start += BLOCK) {
        Index const width = std::min(BLOCK, n - start);
        for (Index r = 0; r < k; r++) {
            for (Index c = 0; c < width; c++) {
                tile(r, c) = F(r, start + c);
                aim(r, c) = target(r, start + c);
            }
        }
        for (Index sweep = 0; sweep < sweeps; sweep++)
            for (Index r = 0; r < k; r++)
                if (gram(r, r) > 0.0) descend_block(gram[r], aim[r], tile, r);
        for (Index r = 0; r < k; r++)
            for (Index c = 0; c < width; c++) F(r, start + c) = tile(r, c);
    }
}

// Write the entries of F G' at the places of a CSR matrix, for samples in rows.
template <class N>
void entries(const Pattern<N> &pattern, ConstMatrix F, ConstMatrix G, Vector out) {
    for (Index i = 0; i < pattern.rows(); i++) {
        Index const start = pattern.begin(i), end = start + pattern.count(i);
        for (Index p = start; p < end; p++)
            out[p] = dot(F[i], G[pattern.places[p]], F.columns());
    }
}

}  // namespace conepursuit::factorization
