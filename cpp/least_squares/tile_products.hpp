// Inner products of up to eight atoms with targets, a tile of targets at a time.
#pragma once

#include "../shared/constants.hpp"
#include "many_targets.hpp"

namespace conepursuit {

constexpr Index TILE = 128;      // targets treated together: arrays over them fit into the cache
constexpr Index ROW = TILE + 8;  // numbers in a row: a power of two would use few sets of the cache

class TileProducts {
  public:
    TileProducts(ConstMatrix atoms, Index n, Index m) : atoms(atoms), n(n), m(m), space(m) {}

    // Write the products of all atoms with the targets of a tile, and ||b||^2.
    void multiply_tile(const Targets &targets, Index start, Index width) {
        if (targets.along != 1) return multiply_across(targets, start, width);
        const double *rows[TILE];
        for (Index p = 0; p < width; p++) rows[p] = targets.get(start + p, space).data();
        if (n <= 3) {
            multiply_along<3, 2>(rows, width, 0);
        } else {
            multiply_along<6, 1>(rows, width, 0);
        }
        if (n > 6) multiply_along<3, 2>(rows, width, 6);
    }

    ConstMatrix atoms;
    Index n, m;
    Buffer<double> space;  // for a target whose entries do not lie side by side
    // With seven or eight atoms, products with three rows from the sixth on are written: one more.
    alignas(64) double C[FEW_ATOMS + 1][ROW] = {};
    alignas(64) double squares[TILE] = {};

  private:
    // The products of ATOMS atoms from `first` on, COUNT targets at a time, and ||b||^2.
    template <Index ATOMS, Index COUNT>
    void multiply_along(const double *const *rows, Index width, Index first) {
        Index p = 0;
        for (; p + COUNT <= width; p += COUNT) multiply_some<ATOMS, COUNT>(rows + p, p, first);
        for (; p < width; p++) multiply_some<ATOMS, 1>(rows + p, p, first);
    }

    template <Index ATOMS, Index COUNT>
    void multiply_some(const double *const *b, Index p, Index first) {
        Register sums[COUNT][ATOMS] = {}, own[COUNT] = {}, values[COUNT];
        const double *rows[ATOMS];
        each<ATOMS>([&](Index a) { rows[a] = atoms[first + a].data(); });
        Index i = 0;
        for (; i + LANES_EACH <= m; i += LANES_EACH) {
            each<COUNT>([&](Index q) {
                values[q] = load_register(b[q] + i);
                own[q] = fused(values[q], values[q], own[q]);
            });
            each<ATOMS>([&](Index a) {
                Register const row = load_register(rows[a] + i);
                each<COUNT>([&](Index q) { sums[q][a] = fused(row, values[q], sums[q][a]); });
            });
        }
        each<COUNT>([&](Index q) {
            double square = total(own[q]);
            for (Index j = i; j < m; j++) square = fused(b[q][j], b[q][j], square);
            squares[p + q] = square;
            each<ATOMS>([&](Index a) {
                double product = total(sums[q][a]);
                for (Index j = i; j < m; j++) product = fused(rows[a][j], b[q][j], product);
                C[first + a][p + q] = product;
            });
        });
    }

    // The same where an entry of all targets lies in a row: the loops run over the targets.
    void multiply_across(const Targets &targets, Index start, Index width) {
        for (Index p = 0; p < TILE; p++) squares[p] = 0.0;
        for (Index a = 0; a < n; a++) {
            for (Index p = 0; p < TILE; p++) C[a][p] = 0.0;
        }
        bool const more = start + 2 * TILE <= targets.count;
        Index i = 0;
        for (; i + 4 <= m; i += 4) {
            const double *b = targets.data + start + i * targets.along;
            const double *c = b + targets.along, *d = c + targets.along, *e = d + targets.along;
            if (more) {  // the next tile lies in many short rows, which the processor does not foresee
                for (const double *row : {b, c, d, e}) prefetch(row + TILE);
            }
            for (Index a = 0; a < n; a++) {
                double const s = atoms(a, i), t = atoms(a, i + 1);
                double const u = atoms(a, i + 2), w = atoms(a, i + 3);
                double *to = C[a];
#pragma omp simd
                for (Index p = 0; p < width; p++) {
                    to[p] = fused(s, b[p], fused(t, c[p], fused(u, d[p], fused(w, e[p], to[p]))));
                }
            }
            double *to = squares;
#pragma omp simd
            for (Index p = 0; p < width; p++) {
                double const half = fused(d[p], d[p], fused(e[p], e[p], to[p]));
                to[p] = fused(b[p], b[p], fused(c[p], c[p], half));
            }
        }
        for (; i < m; i++) {
            const double *b = targets.data + start + i * targets.along;
            for (Index a = 0; a < n; a++) {
                for (Index p = 0; p < width; p++) C[a][p] = fused(atoms(a, i), b[p], C[a][p]);
            }
            for (Index p = 0; p < width; p++) squares[p] = fused(b[p], b[p], squares[p]);
        }
    }

    // Ask for TILE numbers before they are needed.
    static void prefetch(const double *row) {
#if defined(__GNUC__) || defined(__clang__)
        for (Index p = 0; p < TILE; p += WIDTH) __builtin_prefetch(row + p);
#else
        (void)row;
#endif
    }
};

}  // namespace conepursuit
