// Products and sums over a dense dictionary, each by one reading of its memory.
//
// Sums are in float64 whatever the type of the data, so that float32 takes half the time and loses
// nothing.
#pragma once

#include <algorithm>

#include "arithmetic.hpp"

namespace conepursuit {

constexpr Index COLUMN_TILE = 32768;  // columns whose sums are held in the cache at a time

// The inner product of a column with b, its squared norm and its sum.
struct Moments {
    double product, square, sum;
};

template <class T>
Moments moments(const T *column, ConstVector b) {
    double product = 0.0, square = 0.0, sum = 0.0;
    const double *target = b.data();
#pragma omp simd reduction(+ : product, square, sum)
    for (Index i = 0; i < b.size(); i++) {
        double const v = column[i];
        product = fused(target[i], v, product);
        square = fused(v, v, square);
        sum += v;
    }
    return {product, square, sum};
}

// Add A'b to `products`, for contiguous rows; where they are asked for, add the squared norms of the
// columns and their sums to `squares` and `sums`.
template <bool MOMENTS, class T>
void add_rows(Grid<const T> A, ConstVector b, Vector products, Vector squares, Vector sums) {
    Index const m = A.rows(), n = A.columns();
    for (Index start = 0; start < n; start += COLUMN_TILE) {
        Index const width = std::min(COLUMN_TILE, n - start);
        double *p = products.data() + start;
        double *s = MOMENTS ? squares.data() + start : nullptr;
        double *t = MOMENTS ? sums.data() + start : nullptr;
        Index i = 0;
        for (; i + 3 < m; i += 4) {
            const T *first = A[i].data() + start, *second = A[i + 1].data() + start;
            const T *third = A[i + 2].data() + start, *fourth = A[i + 3].data() + start;
            double const k = b[i], l = b[i + 1], o = b[i + 2], q = b[i + 3];
#pragma omp simd
            for (Index j = 0; j < width; j++) {
                double const u = first[j], v = second[j], w = third[j], z = fourth[j];
                p[j] += fused(k, u, l * v) + fused(o, w, q * z);
                if constexpr (MOMENTS) {
                    s[j] += fused(u, u, v * v) + fused(w, w, z * z);
                    t[j] += (u + v) + (w + z);
                }
            }
        }
        for (; i < m; i++) {
            const T *row = A[i].data() + start;
            double const weight = b[i];
#pragma omp simd
            for (Index j = 0; j < width; j++) {
                double const u = row[j];
                p[j] = fused(weight, u, p[j]);
                if constexpr (MOMENTS) {
                    s[j] = fused(u, u, s[j]);
                    t[j] += u;
                }
            }
        }
    }
}

// Write A'b, the squared norms of the columns and their sums, for contiguous rows, into zeros.
template <class T>
void survey_rows(Grid<const T> A, ConstVector b, Vector products, Vector squares, Vector sums) {
    add_rows<true>(A, b, products, squares, sums);
}

// Write A'r for contiguous rows, into zeros.
template <class T>
void transposed_times(Grid<const T> A, ConstVector r, Vector out) {
    add_rows<false>(A, r, out, out, out);
}

// The same for contiguous columns, which are the rows of `atoms`.
template <class T>
void survey_columns(Grid<const T> atoms, ConstVector b, Vector products, Vector squares,
                    Vector sums) {
    for (Index j = 0; j < atoms.rows(); j++) {
        Moments const found = moments(atoms[j].data(), b);
        products[j] = found.product, squares[j] = found.square, sums[j] = found.sum;
    }
}

// Write A x for contiguous rows.
template <class T>
void times(Grid<const T> A, ConstVector x, Vector out) {
    for (Index i = 0; i < A.rows(); i++) out[i] = moments(A[i].data(), x).product;
}

}  // namespace conepursuit
