// Products of matrices of the size of a tile of data, in loops that run in registers and caches.
//
// The second matrix is copied once into panels of a few columns, so that the inner loop reads
// contiguous memory. The speed is about that of a library for these sizes.
#pragma once

#include <algorithm>

#include "../shared/arithmetic.hpp"

namespace conepursuit::factorization {

// Rows whose sums are held in registers at once. With more, sums spill to memory; with fewer, the
// multipliers wait for each other. Registers of 128 bits, of which there are 16, hold two rows.
#if defined(__AVX2__) || defined(__aarch64__)
constexpr Index BAND = 6;
#else
constexpr Index BAND = 2;
#endif

// Rows of a panel in one pass: 16 KB. With more, a panel leaves the nearest cache between two bands
// of rows; with fewer, sums are written and read again too often.
constexpr Index DEPTH = 256;

// Side of the squares in which a matrix is transposed: two lines of the cache for each of its rows.
// Larger squares leave the nearest cache; smaller ones use parts of lines.
constexpr Index SQUARE = 16;

// Write A' as `out`, whose shape is that of A'.
inline void transpose(ConstMatrix A, Matrix out) {
    for (Index top = 0; top < A.rows(); top += SQUARE) {
        Index const bottom = std::min(top + SQUARE, A.rows());
        for (Index left = 0; left < A.columns(); left += SQUARE) {
            Index const right = std::min(left + SQUARE, A.columns());
            for (Index j = left; j < right; j++)
                for (Index i = top; i < bottom; i++) out(j, i) = A(i, j);
        }
    }
}

// The rows of A from `first` on, `count` of them.
template <class T>
Grid<T> rows_of(Grid<T> A, Index first, Index count) {
    check(first + count, A.rows() + 1);
    return {A.data() + first * A.columns(), count, A.columns()};
}

// A matrix in panels of WIDTH columns, each row after row; the last is filled up with zeros.
class Panels {
  public:
    Panels(Index rows, Index columns)
        : memory_(rows * padded(columns)), rows_(rows), columns_(columns) {}
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }

    // Take over B, which has the shape of the panels.
    Panels &pack(ConstMatrix B) {
        for (Index left = 0; left < columns_; left += WIDTH) {
            Index const width = std::min(WIDTH, columns_ - left);
            double *to = memory_.span().data() + left * rows_;
            for (Index i = 0; i < rows_; i++, to += WIDTH)
                for (Index j = 0; j < width; j++) to[j] = B(i, left + j);
        }
        return *this;
    }

    // Take over B', where B has the shape of the transposed panels.
    Panels &pack_transposed(ConstMatrix B) {
        for (Index left = 0; left < columns_; left += WIDTH) {
            Index const width = std::min(WIDTH, columns_ - left);
            double *const to = memory_.span().data() + left * rows_;
            for (Index j = 0; j < width; j++)
                for (Index i = 0; i < rows_; i++) to[i * WIDTH + j] = B(left + j, i);
        }
        return *this;
    }

    // Rows from `first` on of the panel that begins with column `left`.
    const double *panel(Index left, Index first) const {
        check(left * rows_ + first * WIDTH, rows_ * padded(columns_) + 1);
        return memory_.span().data() + left * rows_ + first * WIDTH;
    }

  private:
    Buffer<double> memory_;
    Index rows_, columns_;
};

// A part of one product: `depth` columns of A against as many rows of a panel b. Rows of A lie
// `stride` apart, those of C `wide` apart; `width` columns of the panel are wanted.
struct Pass {
    Index stride, wide, depth, width;
    bool fresh;  // whether C is written; otherwise it is added to
};

// Make one pass for R rows, which begin at a and c.
template <Index R>
inline void multiply_band(const double *a, const double *b, double *c, const Pass &pass) {
    Eight sums[R];
    for (Index p = 0; p < pass.depth; p++, b += WIDTH) {
        Eight const row = Eight::load(b);
        each<R>([&](Index r) { sums[r].add(spread(a[r * pass.stride + p]), row); });
    }
    each<R>([&](Index r) {
        double found[WIDTH], *to = c + r * pass.wide;
        sums[r].store(found);
        for (Index j = 0; j < pass.width; j++) to[j] = pass.fresh ? found[j] : to[j] + found[j];
    });
}

// Make one pass for some rows, which begin at a and c.
inline void multiply_rows(const double *a, const double *b, double *c, Index rows,
                          const Pass &pass) {
    Index i = 0;
    for (; i + BAND <= rows; i += BAND)
        multiply_band<BAND>(a + i * pass.stride, b, c + i * pass.wide, pass);
    for (; i + 2 <= rows; i += 2)
        multiply_band<2>(a + i * pass.stride, b, c + i * pass.wide, pass);
    for (; i < rows; i++) multiply_band<1>(a + i * pass.stride, b, c + i * pass.wide, pass);
}

// Write C = A B; C has the rows of A and the columns of B.
inline void multiply(ConstMatrix A, const Panels &B, Matrix C) {
    check(A.columns(), B.rows() + 1);
    check(B.rows(), A.columns() + 1);
    check(C.columns(), B.columns() + 1);
    check(A.rows(), C.rows() + 1);
    Index const inner = A.columns(), columns = C.columns();
    for (Index first = 0; first == 0 || first < inner; first += DEPTH) {
        for (Index left = 0; left < columns; left += WIDTH) {
            Pass const pass{inner, columns, std::min(DEPTH, inner - first),
                            std::min(WIDTH, columns - left), first == 0};
            multiply_rows(A.data() + first, B.panel(left, first), C.data() + left, A.rows(), pass);
        }
    }
}

// Write the inner products of b with four rows of n entries, which begin at a.
inline void dot_four(const double *a, const double *b, Index n, double *out) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (Index p = 0; p < n; p++) {
        s0 = fused(a[p], b[p], s0);
        s1 = fused(a[n + p], b[p], s1);
        s2 = fused(a[2 * n + p], b[p], s2);
        s3 = fused(a[3 * n + p], b[p], s3);
    }
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
}

// Write H = A A'.
inline void gram_of(ConstMatrix A, Matrix H) {
    for (Index j = 0; j < A.rows(); j++) {
        Vector const row = H[j];
        Index i = 0;
        for (; i + 4 <= j + 1; i += 4)
            dot_four(A[i].data(), A[j].data(), A.columns(), row.part(i, 4).data());
        for (; i <= j; i++) row[i] = dot(A[i], A[j], A.columns());
        for (i = 0; i < j; i++) H(i, j) = row[i];
    }
}

// Write entries (i + r, left + j) of A'A, for r < 4 and j < WIDTH, into `block`.
inline void gram_block(ConstMatrix A, Index i, Index left, double (&block)[4][WIDTH]) {
    const double *a = A.data() + i, *b = A.data() + left;
    Eight sums[4];
    for (Index p = 0; p < A.rows(); p++, a += A.columns(), b += A.columns()) {
        Eight const row = Eight::load(b);
        each<4>([&](Index r) { sums[r].add(spread(a[r]), row); });
    }
    each<4>([&](Index r) { sums[r].store(block[r]); });
}

// Write H = A'A, of k x k, where A has padded(k) columns; those beyond k hold zeros.
inline void gram_of_columns(ConstMatrix A, Matrix H) {
    Index const k = H.rows();
    double block[4][WIDTH];
    for (Index left = 0; left < k; left += WIDTH) {
        Index const right = std::min(left + WIDTH, k);
        for (Index i = 0; i < right; i += 4) {
            gram_block(A, i, left, block);
            for (Index r = i; r < std::min(i + 4, right); r++)
                for (Index j = left; j < right; j++) H(r, j) = H(j, r) = block[r - i][j - left];
        }
    }
}

// The sum of the entries.
inline double sum(ConstVector a) {
    const double *const p = a.data();
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < a.size(); i++) total += p[i];
    return total;
}

// Write the sums of the rows of A.
inline void sum_rows(ConstMatrix A, Vector sums) {
    for (Index r = 0; r < A.rows(); r++) sums[r] = sum(A[r]);
}

// The most entries in a row of a CSR matrix.
template <class N>
Index longest_row(Span<const N> indptr) {
    Index longest = 0;
    for (Index i = 0; i + 1 < indptr.size(); i++)
        longest = std::max(longest, static_cast<Index>(indptr[i + 1] - indptr[i]));
    return longest;
}

// The rows of a CSR matrix without their data: the columns of the entries of row i are
// places[indptr[i]], ..., places[indptr[i + 1] - 1].
template <class N>
struct Pattern {
    Span<const N> places, indptr;

    Index rows() const { return std::max<Index>(indptr.size() - 1, 0); }
    Index begin(Index i) const { return static_cast<Index>(indptr[i]); }
    Index count(Index i) const { return static_cast<Index>(indptr[i + 1] - indptr[i]); }
    Span<const N> row(Index i) const { return places.part(begin(i), count(i)); }
};

}  // namespace conepursuit::factorization
