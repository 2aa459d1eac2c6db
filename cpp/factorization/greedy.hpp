// Greedy coordinate descent for one factor of a factorisation, by Hsieh and Dhillon [1].
//
// For data X of shape (rows, cols) and G fixed, `greedy_sweep` lowers the least-squares objective
//
//     f(F) = 1/2 ||X - F'G||^2 + l1 sum(F) + l2/2 ||F||^2,   F >= 0.
//
// [1] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
// non-negative matrix factorization. International Conference on Knowledge Discovery and Data
// Mining, 2011.
#pragma once

#include "product.hpp"

namespace conepursuit::factorization {

// Curvatures up to this have lost digits to underflow; they count as zero and divide no step.
// Larger ones do.
constexpr double SMALLEST = 1e-305;

namespace greedy {

// What the rows of F' share: the Gram matrix, the curvatures of f along the entries, and their
// inverses, 0 where the curvature counts as zero. `gains` is work space for one row.
struct Model {
    ConstMatrix gram;
    Vector curvatures, inverses, gains;
};

// Write by how much each entry of f can lower the objective; return the best, 0 if none can.
inline Index rate(ConstVector f, ConstVector slopes, const Model &model) {
    const double *const weight = f.data(), *const slope = slopes.data();
    const double *const curvature = model.curvatures.data(), *const inverse = model.inverses.data();
    double *const gain = model.gains.data();
    Index const k = f.size();
#pragma omp simd
    for (Index r = 0; r < k; r++) {
        double const step = std::max(-slope[r] * inverse[r], -weight[r]);
        gain[r] = -step * fused(0.5 * curvature[r], step, slope[r]);  // 0 if the inverse is
    }
    double most = 0.0;
#pragma omp simd reduction(max : most)
    for (Index r = 0; r < k; r++) most = gain[r] > most ? gain[r] : most;
    if (!(most > 0.0)) return 0;
    Index best = 0;
    while (gain[best] != most) best++;
    return best;
}

// Update the best entry of one row until it gains at most `enough`; return how often.
//
// The slopes are those at f, before and after.
inline Index descend(const Model &model, Vector f, Vector slopes, double enough, Index max_inner) {
    for (Index update = 0; update < max_inner; update++) {
        Index const best = rate(f, slopes, model);
        double const after = std::max(f[best] - slopes[best] * model.inverses[best], 0.0);
        double const change = after - f[best];
        if (!(model.gains[best] > enough) || change == 0.0) return update;
        f[best] = after;
        add_multiple(change, model.gram[best], f.size(), slopes);
        slopes[best] += change * (model.curvatures[best] - model.gram(best, best));
    }
    return max_inner;
}

// Write the slopes of the objective at the weights F', row by row.
inline void differentiate(ConstMatrix gram, ConstMatrix target, ConstMatrix weights, double l1,
                          double l2, Matrix slopes) {
    multiply(weights, Panels(gram.rows(), gram.columns()).pack(gram), slopes);
    for (Index i = 0; i < weights.rows(); i++)
        for (Index r = 0; r < weights.columns(); r++)
            slopes(i, r) = slopes(i, r) - target(r, i) + (l1 + l2 * weights(i, r));
}

// Write curvatures and inverses; where the curvature counts as zero, the weights become 0 if they
// are penalised: such a component fits nothing.
inline void measure(const Model &model, double l1, double l2, Matrix weights) {
    for (Index r = 0; r < weights.columns(); r++) {
        model.curvatures[r] = model.gram(r, r) + l2;
        if (model.curvatures[r] > SMALLEST) {
            model.inverses[r] = 1.0 / model.curvatures[r];
        } else if (l1 + l2 > 0.0) {
            for (Index i = 0; i < weights.rows(); i++) weights(i, r) = 0.0;
        }
    }
}

}  // namespace greedy

// Minimise repeatedly over the entry of each row of F' that lowers f the most, in place; return the
// number of updates.
//
// `gram` is G G' and `target`, of the shape of F, is G X'. A row is done when no entry lowers f by
// more than the share `tolerance` of what the best entry of all rows did at the start (0.001 in
// [1]), or after `max_inner` updates.
inline Index greedy_sweep(ConstMatrix gram, ConstMatrix target, Matrix F, double l1, double l2,
                          double tolerance, Index max_inner) {
    Index const k = F.rows(), rows = F.columns();
    if (k == 0) return 0;
    Table<double> weights(rows, k), slopes(rows, k);
    Buffer<double> curvatures(k), inverses(k), gains(k);
    greedy::Model const model{gram, curvatures, inverses, gains};
    transpose(F, weights);
    greedy::differentiate(gram, target, weights, l1, l2, slopes);
    greedy::measure(model, l1, l2, weights);
    double largest = 0.0;
    for (Index i = 0; i < rows; i++)
        largest = std::max(largest, gains[greedy::rate(weights[i], slopes[i], model)]);
    Index updates = 0;
    for (Index i = 0; i < rows; i++)
        updates += greedy::descend(model, weights[i], slopes[i], tolerance * largest, max_inner);
    transpose(weights, F);
    return updates;
}

}  // namespace conepursuit::factorization
