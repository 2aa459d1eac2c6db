// Products of a vector with several rows at a time, so that each of its entries is read once.
//
// Rows are padded with zeros to a multiple of WIDTH where it says so, and the vectors beside them
// end with zeros, so that loops need no remainder.
#pragma once

#include "registers.hpp"

namespace conepursuit {

constexpr Index LANES = 4;  // rows that a product treats together

// Write zeros into the WIDTH entries that follow the first k.
inline void finish(Vector v, Index k) {
    for (Index i = k; i < k + WIDTH; i++) v[i] = 0.0;
}

// Write the products of v with four rows over m entries.
inline void multiply_four(const double *a, const double *b, const double *c, const double *d,
                          const double *v, Index m, double *out) {
    Eight s, t, u, w;
    Index j = 0;
    for (; j + WIDTH <= m; j += WIDTH) {
        Eight const x = Eight::load(v + j);
        s.add(x, Eight::load(a + j)), t.add(x, Eight::load(b + j));
        u.add(x, Eight::load(c + j)), w.add(x, Eight::load(d + j));
    }
    out[0] = s.sum(), out[1] = t.sum(), out[2] = u.sum(), out[3] = w.sum();
    for (; j < m; j++) {
        out[0] = fused(a[j], v[j], out[0]), out[1] = fused(b[j], v[j], out[1]);
        out[2] = fused(c[j], v[j], out[2]), out[3] = fused(d[j], v[j], out[3]);
    }
}

// Write the products of v with the first n rows, and up to 3 more, over m entries.
inline void multiply(ConstMatrix rows, ConstVector v, Index n, Index m, Vector out) {
    check(m, v.size() + 1);
    for (Index i = 0; i < n; i += LANES) {
        check(i + 3, rows.rows());
        check(i + 3, out.size());
        multiply_four(rows[i].data(), rows[i + 1].data(), rows[i + 2].data(), rows[i + 3].data(),
                      v.data(), m, out.data() + i);
    }
}

// Write the products of v with all rows, of which there may be any number.
inline void multiply_all(ConstMatrix rows, ConstVector v, Vector out) {
    Index const n = rows.rows(), m = rows.columns(), whole = n - n % LANES;
    multiply(rows, v, whole, m, out);
    for (Index i = whole; i < n; i++) out[i] = dot(rows[i], v, m);
}

// Write the products of v with rows[order[i]] over m entries, for i < k and up to 3 more.
inline void multiply_some(ConstMatrix rows, ConstPlaces order, ConstVector v, Index k, Index m,
                          Vector out) {
    check(m, v.size() + 1);
    for (Index i = 0; i < k; i += LANES) {
        check(i + 3, out.size());
        multiply_four(rows[order[i]].data(), rows[order[i + 1]].data(), rows[order[i + 2]].data(),
                      rows[order[i + 3]].data(), v.data(), m, out.data() + i);
    }
}

// Add sum_i weights[i] * row(i), i < k, to `out` over `width` numbers, a multiple of WIDTH.
template <class Row>
inline void add_rows(Row row, ConstVector weights, Index k, Index width, Vector out) {
    check(k, weights.size() + 1);
    check(width, out.size() + 1);
    in_blocks(width, [&]<Index COUNT>(Index j) {
        Eight sums[COUNT];
        each<COUNT>([&](Index b) { sums[b] = Eight::load(out.data() + j + b * WIDTH); });
        for (Index i = 0; i < k; i++) {
            Register const weight = spread(weights.data()[i]);
            const double *from = row(i) + j;
            each<COUNT>([&](Index b) { sums[b].add(weight, from + b * WIDTH); });
        }
        each<COUNT>([&](Index b) { sums[b].store(out.data() + j + b * WIDTH); });
    });
}

// Subtract sum_i weights[i] * rows[order[i]], i < k, from `out`; `negative` is work space.
inline void subtract_rows(ConstMatrix rows, ConstPlaces order, ConstVector weights, Index k,
                          Index width, Vector negative, Vector out) {
    for (Index i = 0; i < k; i++) negative[i] = -weights[i];
    add_rows([&](Index i) { return rows[order[i]].data(); }, negative, k, width, out);
}

// Write u = H v for a symmetric H of k rows, over padded(k) numbers.
inline void multiply_symmetric(ConstMatrix H, ConstVector v, Index k, Vector u) {
    for (Index i = 0; i < padded(k); i++) u[i] = 0.0;
    add_rows([&](Index i) { return H[i].data(); }, v, k, padded(k), u);
}

// Add factors[i] * u to row i of H, i < k, over padded(k) numbers.
inline void add_products(ConstVector factors, ConstVector u, Index k, Matrix H) {
    in_blocks(padded(k), [&]<Index COUNT>(Index j) {
        Eight kept[COUNT];
        each<COUNT>([&](Index b) { kept[b] = Eight::load(u.data() + j + b * WIDTH); });
        for (Index i = 0; i < k; i++) {
            Register const factor = spread(factors.data()[i]);
            double *row = H[i].data() + j;
            each<COUNT>([&](Index b) {
                Eight sum = Eight::load(row + b * WIDTH);
                sum.add(factor, kept[b]);
                sum.store(row + b * WIDTH);
            });
        }
    });
}

// The inner product over `width` numbers, a multiple of WIDTH.
inline double padded_dot(ConstVector a, ConstVector b, Index width) {
    Eight sum;
    for (Index j = 0; j < width; j += WIDTH) {
        sum.add(Eight::load(a.data() + j), Eight::load(b.data() + j));
    }
    return sum.sum();
}

}  // namespace conepursuit
