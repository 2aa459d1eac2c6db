// The sweeps of `weighted.hpp` for data of which only stored entries are observed.
#pragma once

#include "weighted.hpp"

namespace conepursuit::factorization::weighted {

// Data of shape (rows, cols) by rows, as in `scipy.sparse.csr_array`, with weights >= 0 of the
// stored entries; stored zeros are observed.
template <class N>
struct Stored {
    ConstVector data, weights;
    Pattern<N> pattern;
};

// One row: its data, their weights, and the columns they lie in.
template <class N>
struct StoredRow {
    ConstVector x, m;
    Span<const N> columns;
};

template <class N>
StoredRow<N> row_of(const Stored<N> &X, Index i) {
    Index const start = X.pattern.begin(i), count = X.pattern.count(i);
    return {X.data.part(start, count), X.weights.part(start, count), X.pattern.row(i)};
}

// Work space for rows of at most `longest` entries and k components: the atoms of a row, vectors of
// its length and of k, and its Gram matrix.
struct Space {
    Space(Index k, Index longest)
        : atoms(padded(k) * longest), long_one(longest), f(k), pulls(k), gram(k, k) {}
    Buffer<double> atoms, long_one, f, pulls;
    Table<double> gram;
};

// sum_j m_j a_j^2.
inline double weighted_square(ConstVector a, ConstVector m) {
    const double *const p = a.data(), *const q = m.data();
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index j = 0; j < a.size(); j++) total = fused(p[j] * p[j], q[j], total);
    return total;
}

// Make sweeps over the row space.f by its weighted residual, from the atoms of its columns.
template <class N>
void observed_by_residual(const StoredRow<N> &row, ConstMatrix atoms, const Space &space,
                          const Terms &terms) {
    Index const n = row.x.size(), k = space.f.span().size();
    Matrix const own(space.atoms.span().data(), k, n);
    Vector const residual = space.long_one.span().part(0, n), curvatures = space.pulls;
    for (Index j = 0; j < n; j++) {
        ConstVector const atom = atoms[row.columns[j]];
        for (Index r = 0; r < k; r++) own(r, j) = atom[r];
    }
    residual.fill(0.0);
    for (Index r = 0; r < k; r++) {
        add_multiple(space.f[r], own[r], n, residual);
        curvatures[r] = weighted_square(own[r], row.m);
    }
    weigh_residual(row.x, row.m, residual);
    descend(own, row.m, residual, curvatures, space.f, terms);
}

// Write the Gram matrix of a row and the pulls at the present weights.
template <class N>
void compare(const StoredRow<N> &row, ConstMatrix atoms, const Space &space) {
    Index const n = row.x.size(), k = space.f.span().size();
    Matrix const own(space.atoms.span().data(), n, padded(k));
    space.pulls.span().fill(0.0);
    for (Index j = 0; j < n; j++) {
        double const root = std::sqrt(row.m[j]);
        const double *const atom = atoms[row.columns[j]].data();
        double *const to = own[j].data();
#pragma omp simd
        for (Index r = 0; r < k; r++) to[r] = root * atom[r];
        add_multiple(root * row.x[j], own[j], k, space.pulls);
    }
    gram_of_columns(own, space.gram);
    for (Index r = 0; r < k; r++) space.pulls[r] -= dot(space.gram[r], space.f, k);
}

// Make sweeps over the row space.f by its own Gram matrix, from the atoms of its columns.
template <class N>
void observed_by_gram(const StoredRow<N> &row, ConstMatrix atoms, const Space &space,
                      const Terms &terms) {
    Index const k = space.f.span().size();
    compare(row, atoms, space);
    for (Index sweep = 0; sweep < terms.sweeps; sweep++) {
        for (Index r = 0; r < k; r++) {
            double const now = space.f[r];
            double const best = minimiser(now, space.pulls[r], space.gram(r, r), terms);
            if (best != now) {
                add_multiple(now - best, space.gram[r], k, space.pulls);
                space.f[r] = best;
            }
        }
    }
}

// Make sweeps over F, in place, for data of which only stored entries are observed; F and G are as
// in `sweep_weighted`.
template <class N>
void sweep_observed(const Stored<N> &X, Matrix F, ConstMatrix G, const Terms &terms) {
    Index const k = F.rows();
    Table<double> atoms(G.columns(), k);  // the column of G that an entry needs is contiguous
    transpose(G, atoms);
    Space const space(k, longest_row(X.pattern.indptr));
    for (Index i = 0; i < F.columns(); i++) {
        for (Index r = 0; r < k; r++) space.f[r] = F(r, i);
        if (k > COMPONENTS * terms.sweeps) {
            observed_by_residual(row_of(X, i), atoms, space, terms);
        } else {
            observed_by_gram(row_of(X, i), atoms, space, terms);
        }
        for (Index r = 0; r < k; r++) F(r, i) = space.f[r];
    }
}

// f(F) for stored entries, from the residual.
template <class N>
double observed_value(const Stored<N> &X, ConstMatrix F, ConstMatrix G, double l1, double l2) {
    Index const k = F.rows();
    Table<double> left(F.columns(), k), right(G.columns(), k);
    transpose(F, left), transpose(G, right);
    double total = 0.0;
    for (Index i = 0; i < F.columns(); i++) {
        StoredRow<N> const row = row_of(X, i);
        for (Index j = 0; j < row.x.size(); j++) {
            double const rest = row.x[j] - dot(left[i], right[row.columns[j]], k);
            total += 0.5 * row.m[j] * rest * rest;
        }
    }
    return total + cost(F, l1, l2);
}

}  // namespace conepursuit::factorization::weighted
