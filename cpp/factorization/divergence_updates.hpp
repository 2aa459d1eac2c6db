// Multiplicative steps of a whole factor under the divergence of Kullback and Leibler, for dense
// and sparse data; `divergence.hpp` says what is minimised and has the steps of one row.
#pragma once

#include "divergence.hpp"

namespace conepursuit::factorization::divergence {

// Entries of z in a tile of rows: few enough to stay in the cache.
constexpr Index TILE = 32768;

// The least number of rows in a tile; a product of matrices with fewer is slow.
constexpr Index LEAST_ROWS = 32;

// Penalties of F, whether to make the step, and whether to sum the divergences, without penalties.
struct Task {
    double l1, l2;
    bool step, evaluate;
};

// Dense data with their weights, of which there are none, M of shape (0, 0), if all are 1.
struct Dense {
    ConstMatrix X, M;

    bool weighted() const { return M.rows() > 0; }
    ConstVector weights(Index i) const { return weighted() ? M[i] : ConstVector(); }
};

// The other factor G, both ways in panels, and the sums of its rows.
struct Components {
    explicit Components(ConstMatrix G)
        : G(G), along(G.rows(), G.columns()), across(G.columns(), G.rows()), sums(G.rows()) {
        along.pack(G), across.pack_transposed(G), sum_rows(G, sums);
    }
    ConstMatrix G;
    Panels along, across;
    Buffer<double> sums;
};

// Work space for a tile of rows: z and then x / z, m x, pulls and prices, and what `divide` loses.
struct Tile {
    Tile(Index height, Index n, Index k, bool weighted)
        : z(height, n), data(weighted ? height : 0, n), pulls(height, k), prices(height, k),
          lost(height) {}
    Table<double> z, data, pulls, prices;
    Buffer<double> lost;
};

// Write the prices of the rows from `start` on, `count` of them.
inline void price_tile(const Dense &dense, const Components &components, double l1, Index start,
                       Index count, const Tile &tile) {
    Matrix const prices = rows_of(tile.prices.grid(), 0, count);
    if (dense.weighted()) multiply(rows_of(dense.M, start, count), components.across, prices);
    for (Index i = 0; i < count; i++)
        for (Index r = 0; r < prices.columns(); r++)
            prices(i, r) = (dense.weighted() ? prices(i, r) : components.sums[r]) + l1;
}

// The data of row i, which is row `at` of the tile, times its weights.
inline ConstVector weighted_row(const Dense &dense, Index i, Index at, const Tile &tile) {
    if (!dense.weighted()) return dense.X[i];
    const double *const x = dense.X[i].data(), *const m = dense.M[i].data();
    Vector const out = tile.data[at];
    for (Index j = 0; j < out.size(); j++) out.data()[j] = m[j] * x[j];
    return out;
}

// Make the steps of the rows from `start` on, `count` of them; the tile holds their z.
inline void step_tile(const Dense &dense, const Components &components, const Task &task,
                      Index start, Index count, const Tile &tile, Matrix rows) {
    price_tile(dense, components, task.l1, start, count, tile);
    for (Index i = 0; i < count; i++)
        tile.lost[i] = divide(weighted_row(dense, start + i, i, tile), tile.z[i]);
    multiply(rows_of(tile.z.grid(), 0, count), components.across,
             rows_of(tile.pulls.grid(), 0, count));
    for (Index i = 0; i < count; i++) {
        Vector const f = rows[start + i], price = tile.prices[i];
        if (grow(f, tile.pulls[i], price, task.l2) || tile.lost[i] > 0.0) {
            ConstVector const x = dense.weighted() ? tile.data[i] : dense.X[start + i];
            rescue(x, tile.z[i], components.G, f, price, task.l2);
        }
    }
}

// Make one step of F for dense data; return the divergence before it, if asked, else 0.
//
// X has the shape (m, n), F and G have (k, m) and (k, n); all are non-negative. F is updated.
inline double update_dense(const Dense &dense, Matrix F, ConstMatrix G, const Task &task) {
    Index const m = dense.X.rows(), n = dense.X.columns(), k = G.rows();
    Index const height = std::min(std::max(TILE / std::max<Index>(n, 1), LEAST_ROWS), m);
    Components const components(G);
    Table<double> rows(m, k);
    transpose(F, rows);
    Tile const tile(height, n, k, dense.weighted());
    double value = 0.0;
    for (Index start = 0; start < m; start += height) {
        Index const count = std::min(height, m - start);
        multiply(rows_of(rows.grid(), start, count), components.along,
                 rows_of(tile.z.grid(), 0, count));
        for (Index i = 0; i < count && task.evaluate; i++)
            value += diverge(dense.X[start + i], tile.z[i], dense.weights(start + i));
        if (task.step) step_tile(dense, components, task, start, count, tile, rows);
    }
    if (task.step) transpose(rows, F);
    return value;
}

// Work space for rows of at most `longest` entries: z, the price and the pull of a row, and its
// part of G.
struct RowSpace {
    RowSpace(Index k, Index longest) : z(longest), price(k), pull(k), part(k * longest) {}
    Buffer<double> z, price, pull, part;
};

// Write the entries of the row f'G at some places; G is given by its columns.
template <class N>
void product_at(ConstVector f, ConstMatrix columns, Span<const N> places, Vector z) {
    for (Index p = 0; p < places.size(); p++) z[p] = dot(f, columns[places[p]], f.size());
}

// Write sum_p quotients[p] G[:, places[p]], the pull of a row; G is given by its columns.
template <class N>
void pull_at(ConstVector quotients, ConstMatrix columns, Span<const N> places, Vector pull) {
    pull.fill(0.0);
    for (Index p = 0; p < places.size(); p++)
        add_multiple(quotients[p], columns[places[p]], pull.size(), pull);
}

// Make the step of one row f, whose z the space holds.
template <class N>
void step_row(ConstVector x, Span<const N> places, ConstMatrix columns, Vector f, double l2,
              const RowSpace &space) {
    Index const k = f.size(), n = x.size();
    Vector const z = space.z.span().part(0, n);
    double const lost = divide(x, z);
    pull_at(z, columns, places, space.pull);
    if (!grow(f, space.pull, space.price, l2) && !(lost > 0.0)) return;
    Matrix const part(space.part.span().data(), k, n);
    for (Index p = 0; p < n; p++)
        for (Index r = 0; r < k; r++) part(r, p) = columns(places[p], r);
    rescue(x, z, part, f, space.price, l2);
}

// Make one step of F for data in CSR form; return what `update_dense` does.
//
// Entries that are not stored are zero and add z to the divergence. The sum of these z follows from
// `sums`, those of the components of the other factor; G may be a part of it, that has all columns
// with an entry.
template <class N>
double update_sparse(ConstVector data, const Pattern<N> &pattern, Matrix F, ConstMatrix G,
                     ConstVector sums, const Task &task) {
    Index const k = G.rows(), m = pattern.rows();
    Table<double> rows(m, k), columns(G.columns(), k);
    transpose(F, rows), transpose(G, columns);
    RowSpace const space(k, longest_row(pattern.indptr));
    for (Index r = 0; r < k; r++) space.price[r] = sums[r] + task.l1;
    double value = 0.0;
    for (Index i = 0; i < m; i++) {
        Vector const f = rows[i], z = space.z.span().part(0, pattern.count(i));
        ConstVector const x = data.part(pattern.begin(i), pattern.count(i));
        product_at(f, columns, pattern.row(i), z);
        if (task.evaluate) {
            double const elsewhere = dot(f, sums, k) - sum(z);
            value += diverge(x, z, {}) + std::max(elsewhere, 0.0);
        }
        if (task.step) step_row(x, pattern.row(i), columns, f, task.l2, space);
    }
    if (task.step) transpose(rows, F);
    return value;
}

// Write about new (new / old)^share, with the quotient held between 1 / limit and limit.
//
// The power is computed by a Pade approximant, which is positive. Where an entry of new or old is
// zero, new is written.
inline void extrapolate(ConstMatrix fresh, ConstMatrix old, double share, double limit,
                        Matrix out) {
    const double *const a = fresh.data(), *const b = old.data();
    double *const to = out.data();
    double const ahead = 1.0 + share, behind = 1.0 - share, least = 1.0 / limit;
#pragma omp simd
    for (Index i = 0; i < fresh.rows() * fresh.columns(); i++) {
        double const above = b[i] > 0.0 ? a[i] : 1.0, below = b[i] > 0.0 ? b[i] : 1.0;
        double const quotient = std::min(std::max(above / below, least), limit);
        to[i] = a[i] * ((ahead * quotient + behind) / (behind * quotient + ahead));
    }
}

}  // namespace conepursuit::factorization::divergence
