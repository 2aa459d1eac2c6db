// Non-negative least squares of many targets on at most eight atoms, by the table of all supports.
//
// Every target starts from all atoms, so that its result does not depend on other targets. The
// targets are treated in tiles. Arrays over a tile have a row for each atom and a column for each
// target, and the loops run over the targets, in vector registers. Only targets for which the first
// support fails are searched one by one, without branches, which would be mispredicted.
#pragma once

#include "active_set.hpp"
#include "certificate.hpp"
#include "sums.hpp"
#include "supports.hpp"
#include "tile_products.hpp"

namespace conepursuit {

// Supports that are tried for a target before it is left to another kernel.
constexpr std::int64_t MOST_TRIES = 20 * FEW_ATOMS;

// Share of ||b||^2 below which ||r||^2 is computed from r. Above, it is taken from inner products,
// since few digits cancel.
constexpr double CANCELLED = 1e-4;

class FewAtoms : private TileProducts {
  public:
    FewAtoms(ConstMatrix atoms, ConstMatrix G, ConstVector sums, Supports<const double> all,
             const WeightSum &sum, Index n, Index m)
        : TileProducts(atoms, n, m), G(G), sums(sums), all(all), sum(sum),
          bits(n + (sum.at_most ? 1 : 0)), noise(product_rounding(m + 2 * FEW_ATOMS)) {
        for (Index i = 0; i < n; i++) longest = std::max(longest, std::sqrt(G(i, i)));
    }

    // Fit and certify all targets.
    void fit(const Targets &targets, const Results &out) {
        for (Index start = 0; start < targets.count; start += TILE) {
            Index const width = std::min(TILE, targets.count - start);
            multiply_tile(targets, start, width);
            for (Index p = 0; p < TILE; p++) sizes[p] = std::sqrt(squares[p]);
            search(width);
            weigh();
            if (sum.given()) prove_sums();
            for (Index p = 0; p < width; p++) finish_target(targets, start + p, p, out);
        }
    }

  private:
    // Write M c + shift for one support and all targets of a tile, and bits for what is positive.
    void try_everywhere(Index support) {
        for (Index p = 0; p < TILE; p++) found[p] = 0;
        for (Index i = 0; i < bits; i++) {
            const double *r = all.row(support, i);
            double const shift = all.shift(support, i), least = all.least(support, i);
            double const s = r[0], t = r[1], u = r[2], w = r[3];
            double const x = r[4], y = r[5], z = r[6], o = r[7], rough_entry = r[FEW_ATOMS];
            std::uint64_t const bit = std::uint64_t(1) << i;
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                double const half = fused(t, C[1][p], fused(s, C[0][p], shift));
                double const low = fused(w, C[3][p], fused(u, C[2][p], half));
                double const high =
                    fused(o, C[7][p], fused(z, C[6][p], fused(y, C[5][p], x * C[4][p])));
                V[i][p] = low + high;
                found[p] |= V[i][p] > fused(rough_entry, sizes[p], least) ? bit : 0;
            }
        }
    }

    // Write M c + shift for one support and one target p, and return bits for its positive entries.
    std::uint64_t try_on(std::uint64_t support, Index p) {
        double const a = C[0][p], b = C[1][p], c = C[2][p], d = C[3][p];
        double const e = C[4][p], f = C[5][p], g = C[6][p], h = C[7][p], size = sizes[p];
        std::uint64_t positive = 0;
        for (Index i = 0; i < bits; i++) {
            const double *r = all.row(Index(support), i);
            double const shift = all.shift(Index(support), i);
            double const least = all.least(Index(support), i);
            double v = fused(r[3], d, fused(r[2], c, fused(r[1], b, fused(r[0], a, shift))));
            if (n > 4) v += fused(r[7], h, fused(r[6], g, fused(r[5], f, r[4] * e)));
            V[i][p] = v;
            // The outcome is shifted in: a condition would become a branch.
            positive |= std::uint64_t(v > fused(r[FEW_ATOMS], size, least)) << i;
        }
        return positive;
    }

    // Write the support of the solution of every target, M c + shift for it, and the tries.
    //
    // All atoms with an entry of the wrong sign enter or leave at once (block principal pivoting).
    // After 2 FEW_ATOMS tries only the first of them does (Murty 1974). A target for which no
    // support is found has MOST_TRIES tries.
    void search(Index width) {
        std::uint64_t const first = all.repaired[(Index(1) << bits) - 1];
        try_everywhere(Index(first));
        Index count = 0;
        for (Index p = 0; p < width; p++) {
            supports[p] = all.repaired[Index(found[p])];
            tries[p] = 1, pending[count] = p;
            count += found[p] != first;
        }
        for (Index p = width; p < TILE; p++) supports[p] = 0;
        for (std::int64_t tried = 2; tried <= MOST_TRIES && count > 0; tried++) {
            Index kept = 0;
            for (Index q = 0; q < count; q++) {
                Index const p = pending[q];
                std::uint64_t const support = supports[p], wrong = try_on(support, p) ^ support;
                std::uint64_t const change = tried > 2 * FEW_ATOMS ? wrong & (~wrong + 1) : wrong;
                supports[p] = all.repaired[Index(support ^ change)];
                tries[p] = tried, pending[kept] = p;
                kept += wrong != 0;
            }
            count = kept;
        }
    }

    // Write the weights W, the slopes as D, and four numbers for all targets of a tile.
    //
    // These are ||r||^2 as `left`; the sum of weight times norm as `reach`; the largest size of a
    // slope in the support as `rough`; and the largest slope outside as `steep`. The last two are
    // for unit atoms and include their error. The slopes in the support are used for ||r||^2, which
    // makes it accurate even if the weights are less so.
    void weigh() {
        for (Index p = 0; p < TILE; p++) {
            left[p] = squares[p], reach[p] = 0.0, rough[p] = 0.0, steep[p] = -INFINITE;
        }
        for (Index i = 0; i < n; i++) {
            double const length = std::sqrt(G(i, i));
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                W[i][p] = supports[p] >> i & 1 ? V[i][p] : 0.0;
                reach[p] = fused(length, W[i][p], reach[p]);
            }
        }
        if (sum.given()) close_sums();
        for (Index i = 0; i < n; i++) weigh_atom(i);
        for (Index p = 0; p < TILE; p++) {
            double const error = noise * (sizes[p] + reach[p]);
            rough[p] += error;
            steep[p] += error;
        }
    }

    void weigh_atom(Index i) {
        double const s = G(i, 0), t = G(i, 1), u = G(i, 2), w = G(i, 3);
        double const x = G(i, 4), y = G(i, 5), z = G(i, 6), o = G(i, 7);
        double const unit = G(i, i) > 0.0 ? 1.0 / std::sqrt(G(i, i)) : 0.0;
        double const least = G(i, i) == 0.0 ? -INFINITE : INFINITE;  // a zero atom has no slope
#pragma omp simd
        for (Index p = 0; p < TILE; p++) {
            double const low = fused(w, W[3][p], fused(u, W[2][p], fused(t, W[1][p], s * W[0][p])));
            double const high =
                fused(o, W[7][p], fused(z, W[6][p], fused(y, W[5][p], x * W[4][p])));
            double const slope = C[i][p] - (low + high);
            bool const inside = supports[p] >> i & 1;
            left[p] -= W[i][p] * (C[i][p] + slope);
            rough[p] = std::max(rough[p], inside ? std::fabs(slope) * unit : 0.0);
            steep[p] = std::max(steep[p], inside ? -INFINITE : std::min(slope * unit, least));
            D[i][p] = slope;
        }
    }

    // Whether the sum of the weights of target p is s, rather than what the atoms leave of it.
    bool is_full(Index p) const { return sum.given() && !(sum.at_most && supports[p] >> n & 1); }

    // Make the sums of weights s, or at most s, up to one rounding, as `close_sum` does.
    void close_sums() {
        for (Index p = 0; p < TILE; p++) lack[p] = sum.s, low[p] = 0.0, top[p] = 0.0;
        for (Index i = 0; i < n; i++) {
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                low[p] += sum_error(lack[p], -W[i][p]);
                lack[p] -= W[i][p];
                top[p] = std::max(top[p], W[i][p]);
            }
        }
        std::uint64_t const slack = std::uint64_t(sum.at_most) << n;
#pragma omp simd
        for (Index p = 0; p < TILE; p++) {
            lack[p] += low[p];
            lack[p] = supports[p] & slack ? std::min(lack[p], 0.0) : lack[p];
        }
        for (Index i = 0; i < n; i++) {
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                bool const largest = W[i][p] == top[p];
                W[i][p] += largest ? lack[p] : 0.0;
                top[p] = largest ? INFINITE : top[p];  // only the first one that is the largest
            }
        }
    }

    // Write mu, the mean slope of the weights, and `sum_gap` with q = r, for all targets of a tile.
    void prove_sums() {
        for (Index p = 0; p < TILE; p++) {
            mu[p] = 0.0, proof[p] = 0.0, top[p] = sum.at_most ? 0.0 : -INFINITE;
        }
        for (Index i = 0; i < n; i++) {
            double const length = std::sqrt(G(i, i));
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                double const error = noise * (sizes[p] + reach[p]);
                mu[p] = fused(W[i][p], D[i][p], mu[p]);
                top[p] = std::max(top[p], D[i][p] + error * length);
            }
        }
        for (Index i = 0; i < n; i++) {
            double const length = std::sqrt(G(i, i));
#pragma omp simd
            for (Index p = 0; p < TILE; p++) {
                double const error = noise * (sizes[p] + reach[p]) * length;
                double const size = std::fabs(top[p]) + std::fabs(D[i][p]);
                proof[p] = fused(W[i][p], (top[p] - D[i][p]) + error + 4.0 * EPS * size, proof[p]);
            }
        }
        // The sum was closed up to half a unit of a weight, and its own rounding.
        double const open = 2.0 * EPS * sum.s;
        for (Index p = 0; p < TILE; p++) {
            mu[p] /= sum.s;
            if (sum.at_most) mu[p] = std::max(mu[p], 0.0);
            proof[p] = (proof[p] + open * std::fabs(top[p])) * (1.0 + product_rounding(n));
        }
    }

    // Write the results of target i, which is column p of the tile.
    void finish_target(const Targets &targets, Index i, Index p, const Results &out) {
        Index const support = Index(supports[p]);
        bool const full = is_full(p);
        double const square = squares[p], level = full ? mu[p] : 0.0;
        ConstVector b;  // most targets are not read again
        if (left[p] < CANCELLED * square || square == 0.0) b = targets.get(i, space);
        for (Index j = 0; j < n; j++) {
            out.X(i, j) = W[j][p], out.duals(i, j) = support >> j & 1 ? 0.0 : level - D[j][p];
        }
        double value = INFINITE;
        if (left[p] < CANCELLED * square) {
            left[p] = squared_residual(b, p);
            double const most = std::sqrt(left[p]) + product_rounding(n) * (sizes[p] + reach[p]);
            value = (0.5 + noise) * most * most;
        }
        double const gap = std::min(full ? proof[p] : cone_gap(out.X[i], out.duals[i], p), value);
        double const scale =
            full ? sum_scale(sizes[p], reach[p], sum.s * longest) : square;
        out.rnorms[i] = std::sqrt(left[p]), out.gaps[i] = gap, out.proven[i] = true;
        out.counts[i] = tries[p];
        if (sum.given()) out.multipliers[i] = level;
        bool const refused = all.delicate[support] || tries[p] == MOST_TRIES ||
                             !(gap <= 0.5 * resolution(m) * scale) || !in_range(square, b);
        out.codes[i] = refused ? REDO : OPTIMAL;
    }

    // The gap of target p over all x >= 0.
    //
    // The proof is that of `tilted_gap` with the t of the support, by bounds that hold for all
    // atoms at once; where they do not suffice, `tilted` looks at each atom.
    double cone_gap(ConstVector x, ConstVector dual, Index p) {
        ConstVector const bounds = all.bounds[Index(supports[p])];
        double const v = rough[p] / bounds[FIRM];
        if (!(steep[p] <= v * bounds[LOWEST])) {
            double const error = noise * (sizes[p] + reach[p]);
            return tilted(x, dual, Index(supports[p]), error, rough[p]);
        }
        double const gap = reach[p] * (rough[p] + v * bounds[TOP]);
        return 1.01 * (gap + 0.5 * v * v * bounds[SQUARE]);
    }

    // ||b - A x||^2 with the weights in column p of W.
    double squared_residual(ConstVector b, Index p) const {
        double const s = W[0][p], t = W[1][p], u = W[2][p], w = W[3][p];
        double const x = W[4][p], y = W[5][p], z = W[6][p], o = W[7][p];
        const double *first = atoms[0].data();
        Index const stride = atoms.columns();
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (Index k = 0; k < m; k++) {
            const double *a = first + k;
            double const low = fused(w, a[3 * stride],
                                     fused(u, a[2 * stride], fused(t, a[stride], s * a[0])));
            double const high = fused(
                o, a[7 * stride], fused(z, a[6 * stride], fused(y, a[5 * stride], x * a[4 * stride])));
            double const r = b.data()[k] - (low + high);
            total = fused(r, r, total);
        }
        return total;
    }

    // The better `tilted_gap`, along the ones or along the t of the support.
    //
    // For unit atoms, slopes of the support are zero up to `level`, and the others right up to
    // `error`.
    double tilted(ConstVector x, ConstVector dual, Index support, double error, double level) {
        double g[FEW_ATOMS], g_error[FEW_ATOMS], ones_error[FEW_ATOMS], t_error[FEW_ATOMS];
        ConstVector const bounds = all.bounds[support];
        double const ones = std::sqrt(double(m));
        for (Index j = 0; j < n; j++) {
            double const length = std::sqrt(G(j, j));
            bool const inside = support >> j & 1;
            g[j] = -dual[j], g_error[j] = length * (inside ? level : error);
            ones_error[j] = product_rounding(m) * ones * length;
            t_error[j] = bounds[ERROR] * length;
        }
        ConstVector const slopes{g, n}, errors{g_error, n};
        double const along = tilted_gap(slopes, errors, sums, {ones_error, n}, x, ones, 0.0);
        double const span = std::sqrt(bounds[SQUARE]);
        ConstVector const products = all.functional[support];
        return std::min(along,
                        tilted_gap(slopes, errors, products, {t_error, n}, x, span, 0.0));
    }

    ConstMatrix G;
    ConstVector sums;
    Supports<const double> all;
    WeightSum sum;
    Index bits;  // a support has a bit for each atom, and one for the slack if there is one
    double noise, longest = 0.0;
    alignas(64) double V[FEW_ATOMS][ROW] = {}, W[FEW_ATOMS][ROW] = {}, D[FEW_ATOMS][ROW] = {};
    alignas(64) double sizes[TILE] = {}, left[TILE] = {}, reach[TILE] = {};
    alignas(64) double rough[TILE] = {}, steep[TILE] = {};
    // For a given sum: what it lacks, as two numbers, the largest weight or slope, mu and the gap.
    alignas(64) double lack[TILE] = {}, low[TILE] = {}, top[TILE] = {}, mu[TILE] = {};
    alignas(64) double proof[TILE] = {};
    std::uint64_t supports[TILE] = {}, found[TILE] = {};
    Index pending[TILE] = {};
    std::int64_t tries[TILE] = {};
};

}  // namespace conepursuit
