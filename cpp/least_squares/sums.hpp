// Least squares over x >= 0 with sum(x) = s, or with sum(x) <= s: what the kernels share.
//
// With r = b - A x and slopes h = A'r, a support S has h_j = mu on S and h_j <= mu elsewhere at the
// solution; mu is the multiplier of the sum. A kernel may raise the Gram matrix by a constant v and
// A'b by v s: that adds 1/2 v (s - sum(x))^2 to f, which is zero where the sum is s. Then atoms must
// be independent only with one more entry, sqrt(v), below each of them; so a zero atom may be.
#pragma once

#include <algorithm>
#include <cmath>

#include "../shared/arithmetic.hpp"
#include "refinement.hpp"
#include "supports.hpp"

namespace conepursuit {

// The sum of the weights: s, or at most s. There is no condition where s is zero.
struct WeightSum {
    bool given() const { return s > 0.0; }

    double s = 0.0;
    bool at_most = false;
};

// s - sum(x), summed in twice the precision.
inline double missing(ConstVector x, double s) {
    double high = s, low = 0.0;
    for (Index j = 0; j < x.size(); j++) {
        low += sum_error(high, -x[j]);
        high -= x[j];
    }
    return high + low;
}

// Add what is missing to the largest weight; the sum is then s up to the rounding of that weight.
//
// Returns what was added.
inline double close_sum(Vector x, double s) {
    double const lack = missing(x, s);
    if (x.empty()) return 0.0;
    *std::max_element(x.begin(), x.end()) += lack;
    return lack;
}

// The bound on f(x) - f* over x >= 0 with the given sum, rounding included.
//
// For any vector q in place of r, f* >= <q, b> - 1/2 ||q||^2 - s max_j <a_j, q>, and so
//
//     f(x) - f* <= sum_j x_j (top - <a_j, q>) + (s - sum(x)) top + 1/2 ||r - q||^2
//
// for every top >= max_j <a_j, q>, which where sum(x) <= s is asked for must not be negative. The
// numbers g + offset are A'q as computed, g_error bounds the errors of g, and `distance` ||r - q||.
inline double sum_gap(ConstVector g, ConstVector g_error, double offset, ConstVector x,
                      const WeightSum &sum, double distance) {
    double top = -INFINITE, total = 0.0, lost = 0.0;
    for (Index j = 0; j < g.size(); j++) top = std::max(top, g[j] + g_error[j]);
    if (sum.at_most) top = std::max(top, -offset);
    for (Index j = 0; j < g.size(); j++) {
        if (!(x[j] > 0.0)) continue;
        double const size = std::fabs(g[j]) + std::fabs(top);
        total += x[j] * ((top - g[j]) + g_error[j] + 4.0 * EPS * size);
        lost += LOST;
    }
    double const lack = std::fabs(missing(x, sum.s)) + doubled_rounding(x.size()) * sum.s;
    total += lack * (std::fabs(offset) + std::fabs(top)) + 0.5 * distance * distance;
    if (top != 0.0 || offset != 0.0 || distance > 0.0) lost += 2.0 * LOST;
    return total * (1.0 + product_rounding(g.size())) + lost;
}

// What the gap is compared with where the sum is s, in place of ||b||^2: a product of the sizes of
// the residual and of the set, since the slopes of all atoms, times s, are in the gap.
//
// `size` is ||b||, `reach` the sum of weights times norms, and `most` the largest such sum.
inline double sum_scale(double size, double reach, double most) {
    return (size + reach) * (size + most);
}

// Turns the table of supports into that of a given sum.
//
// With M and H of the raised Gram matrix, z = M 1, t = z / sum(H) and q the sums of the columns of
// H over sum(H), the weights and slopes h_j - mu of a support are (M - z q') c + s t, and mu is
// <q, c> + s v - s / sum(H). Where the sum is at most s, what is missing is the weight of one more
// atom, the slack, which is zero: its bit follows those of the atoms. The supports with the slack
// come behind the others, from a table of the Gram matrix itself. As supports are those of an
// ordinary problem, with atoms a_j - b / s and a further entry, `FewAtoms::search` ends here too.
class SumTabulator {
  public:
    SumTabulator(ConstVector norms, Index m, double raised, const WeightSum &sum,
                 Supports<double> out)
        : norms(norms), n(norms.size()), raised(raised), noise(expected_rounding(m)), sum(sum),
          out(out) {}

    void fill() {
        Index const count = Index(1) << n;
        for (Index support = 0; support < count; support++) {
            if (Index(out.repaired[support]) != support) continue;
            if (support == 0) {
                admit_all();
            } else {
                constrain(support);
            }
        }
        if (!sum.at_most) return;
        for (Index support = count; support < 2 * count; support++) {
            out.repaired[support] |= std::uint64_t(count);
            if (Index(out.repaired[support]) == support) add_slack(support);
        }
    }

  private:
    // Without any atom, the sum cannot be s: all count as positive.
    void admit_all() {
        for (Index i = 0; i < n + sum.at_most; i++) {
            double *row = out.row(0, i);
            std::fill(row, row + FEW_ATOMS + 1, 0.0);
            out.shift(0, i) = 1.0;
        }
    }

    void constrain(Index support) {
        double q[FEW_ATOMS] = {}, all = 0.0;
        for (Index i = 0; i < n; i++) {
            if (!(support >> i & 1)) continue;
            for (Index j = 0; j < n; j++) q[j] += out.row(support, i)[j];
        }
        for (Index j = 0; j < n; j++) all += q[j];
        for (Index j = 0; j < n; j++) q[j] /= all;
        for (Index i = 0; i < n; i++) {
            double *row = out.row(support, i), z = 0.0;
            for (Index j = 0; j < n; j++) z += row[j];
            for (Index j = 0; j < n; j++) row[j] -= z * q[j];
            set_shift(support, i, sum.s * z / all, sum.s * std::fabs(z / all));
        }
        if (!sum.at_most) return;
        for (Index j = 0; j < n; j++) out.row(support, n)[j] = -q[j];  // the slack enters if mu < 0
        set_shift(support, n, sum.s * (1.0 / all - raised), sum.s * (1.0 / all + raised));
    }

    // What the weights of a support of the plain table leave of s.
    void add_slack(Index support) {
        double *row = out.row(support, n);
        for (Index i = 0; i < n; i++) {
            if (!(support >> i & 1)) continue;
            for (Index j = 0; j < n; j++) row[j] -= out.row(support, i)[j];
        }
        set_shift(support, n, sum.s, sum.s);
    }

    // Set the constant of a row, and the rounding of the row; `size` is that of the constant.
    void set_shift(Index support, Index i, double shift, double size) {
        double *row = out.row(support, i);
        out.shift(support, i) = shift, out.least(support, i) = noise * size;
        row[FEW_ATOMS] = 0.0;
        for (Index j = 0; j < n; j++) row[FEW_ATOMS] += noise * std::fabs(row[j]) * norms[j];
    }

    ConstVector norms;
    Index n;
    double raised, noise;
    WeightSum sum;
    Supports<double> out;
};

}  // namespace conepursuit
