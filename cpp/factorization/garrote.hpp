// Cyclic coordinate descent for the non-negative garrote [1], logistic and least squares.
//
// The sweeps of garrote_sweeps.hpp minimise, over c >= 0 and where asked a free intercept b,
//
//     F(b, c) = sum_i w_i l(b + <z_i, c>, y_i) + penalty * sum_j c_j.
//
// They keep the pull p_i = -w_i l'(b + <z_i, c>, y_i) up to date. The score dF/dc_j of an atom is
// penalty - <a_j, p>, where a_j, a row of `atoms`, holds the j-th entries of all z_i.
//
// [1] E. Makalic, D. F. Schmidt. Logistic Regression with the Nonnegative Garrote. Australasian
// Joint Conference on Artificial Intelligence, 2011.
// [2] A. Genkin, D. D. Lewis, D. Madigan. Large-Scale Bayesian Logistic Regression for Text
// Categorization. Technometrics 49(3), 2007.
#pragma once

#include "product.hpp"

namespace conepursuit::factorization::garrote {

// The rounding of a pull, as a share of the sum of the absolute values of its terms. Violations of
// optimality up to the norm of this rounding count as zero.
constexpr double PULL_ROUNDING = 4.0 * EPS;

// The largest first trust region, for atoms whose entries are all below its inverse.
constexpr double WIDEST = 1e100;

// What is minimised: atoms of shape (p, n), y and weights w >= 0 of n samples, the penalty, and
// whether the intercept b is fitted; otherwise it is kept.
struct Problem {
    ConstMatrix atoms;
    ConstVector y, weights;
    double penalty;
    bool intercept;

    Index samples() const { return y.size(); }
    Index features() const { return atoms.rows(); }
};

// When to stop: no optimality violation is more than the share `tol` of ||p|| at the origin, or
// than rounding, or after `max_sweeps` sweeps.
//
// The violation of an atom is |dF/dc_j| / ||a_j||, and 0 where c_j = 0 and the score is not
// negative. The share is not of the violation at the start: from a bad start that would end the
// sweeps too early, and from a good one never.
struct Limits {
    double tol;
    Index max_sweeps;
};

// b, how many sweeps were made, and whether the last one met the tolerance.
struct Outcome {
    double b;
    Index sweeps;
    bool converged;
};

// What the sweeps keep: norms of the atoms, the pull, y (b + Z c) as `margins`, trust regions, the
// curvatures along atoms, a vector of ones, and room for the sizes of sums.
struct State {
    State(Index p, Index n)
        : norms(p), radii(p), curvatures(p), margins(n), pull(n), ones(n), sizes(n) {
        ones.span().fill(1.0);
    }
    Buffer<double> norms, radii, curvatures, margins, pull, ones, sizes;
};

// Write the norms of the atoms; under a penalty, the weights c of zero atoms are set to 0.
inline void measure(const Problem &P, Vector c, Vector norms) {
    for (Index j = 0; j < P.features(); j++) {
        norms[j] = std::sqrt(dot(P.atoms[j], P.atoms[j], P.samples()));
        if (norms[j] == 0.0 && P.penalty > 0.0) c[j] = 0.0;
    }
}

// The violation of optimality: |score| for a positive weight, else max(0, -score).
inline double projected(double score, double weight) {
    return weight > 0.0 ? std::abs(score) : std::max(0.0, -score);
}

// The largest optimality violation of the atoms, over their norms, and the intercept.
inline double violation(const Problem &P, ConstVector norms, ConstVector c, ConstVector pull) {
    Index const n = pull.size();
    double largest = P.intercept ? std::abs(sum(pull)) / std::sqrt(double(n)) : 0.0;
    for (Index j = 0; j < c.size(); j++) {
        if (norms[j] > 0.0) {
            double const score = P.penalty - dot(P.atoms[j], pull, n);
            largest = std::max(largest, projected(score, c[j]) / norms[j]);
        }
    }
    return largest;
}

// Write b + Z c as x, and the sums of the absolute values of its terms as `sizes`.
inline void combine(ConstMatrix atoms, ConstVector c, double b, Vector x, Vector sizes) {
    x.fill(b);
    sizes.fill(std::abs(b));
    double *const to = x.data(), *const size = sizes.data();
    for (Index j = 0; j < c.size(); j++) {
        if (!(c[j] > 0.0)) continue;
        const double *const atom = atoms[j].data();
#pragma omp simd
        for (Index i = 0; i < x.size(); i++) {
            double const term = c[j] * atom[i];
            to[i] += term;
            size[i] += std::abs(term);
        }
    }
}

// The pull of one sample under the logistic loss.
inline double logistic_pull_of(double weight, double y, double margin) {
    return weight * y / (1.0 + std::exp(margin));
}

// Compute margins y (b + Z c) and pull from scratch; return the norm of the pull's rounding.
inline double logistic_pull(const Problem &P, ConstVector c, double b, const State &S) {
    combine(P.atoms, c, b, S.margins, S.sizes);
    double square = 0.0;
    for (Index i = 0; i < P.samples(); i++) {
        S.margins[i] *= P.y[i];
        S.pull[i] = logistic_pull_of(P.weights[i], P.y[i], S.margins[i]);
        double const lost = std::abs(S.pull[i]) + 0.25 * P.weights[i] * S.sizes[i];
        square += lost * lost;
    }
    return PULL_ROUNDING * std::sqrt(square);
}

// Compute the pull, the weighted residual, from scratch; return the norm of its rounding.
inline double squared_pull(const Problem &P, ConstVector c, double b, const State &S) {
    combine(P.atoms, c, b, S.pull, S.sizes);
    double square = 0.0;
    for (Index i = 0; i < P.samples(); i++) {
        S.pull[i] = P.weights[i] * (P.y[i] - S.pull[i]);
        double const lost = P.weights[i] * (std::abs(P.y[i]) + S.sizes[i]);
        square += lost * lost;
    }
    return PULL_ROUNDING * std::sqrt(square);
}

// The largest second derivative of log(1 + exp(-r)) where |r - margin| <= reach.
inline double logistic_curvature(double margin, double reach) {
    double const distance = std::abs(margin) - reach;
    if (distance <= 0.0) return 0.25;
    double const small = std::exp(-distance);
    return small / ((1.0 + small) * (1.0 + small));
}

// Write trust regions in which no margin changes by more than 1.
inline void first_radii(ConstMatrix atoms, Vector radii) {
    for (Index j = 0; j < atoms.rows(); j++) {
        double largest = 0.0;
        for (double const entry : atoms[j]) largest = std::max(largest, std::abs(entry));
        radii[j] = 1.0 / std::max(largest, 1.0 / WIDEST);
    }
}

// The step that minimises the quadratic upper bound of F within the trust region.
inline double trusted_step(ConstVector atom, ConstVector weights, ConstVector margins, double score,
                           double radius) {
    double curvature = 0.0;
    for (Index i = 0; i < margins.size(); i++) {
        if (atom[i] != 0.0) {
            double const bound = logistic_curvature(margins[i], radius * std::abs(atom[i]));
            curvature += weights[i] * atom[i] * atom[i] * bound;
        }
    }
    if (std::abs(score) < curvature * radius) return -score / curvature;
    return score == 0.0 ? 0.0 : -std::copysign(radius, score);
}

// Update margins and pull after a step along an atom.
inline void logistic_move(const Problem &P, ConstVector atom, double step, const State &S) {
    for (Index i = 0; i < P.samples(); i++) {
        if (atom[i] != 0.0) {
            S.margins[i] += step * P.y[i] * atom[i];
            S.pull[i] = logistic_pull_of(P.weights[i], P.y[i], S.margins[i]);
        }
    }
}

// Update the pull after a step along an atom.
inline void squared_move(ConstVector atom, ConstVector weights, double step, Vector pull) {
    const double *const a = atom.data(), *const w = weights.data();
    double *const to = pull.data();
#pragma omp simd
    for (Index i = 0; i < pull.size(); i++) to[i] -= step * w[i] * a[i];
}

// Visit the atoms that violate optimality one after the other; `move(j, score)` changes c_j and the
// pull. Return the largest violation met.
template <class Move>
double visit(const Problem &P, const State &S, Vector c, const Move &move) {
    double largest = 0.0;
    for (Index j = 0; j < c.size(); j++) {
        if (S.norms[j] == 0.0) continue;
        double const score = P.penalty - dot(P.atoms[j], S.pull, P.samples());
        double const gap = projected(score, c[j]);
        if (gap == 0.0) continue;
        largest = std::max(largest, gap / S.norms[j]);
        move(j, score);
    }
    return largest;
}

// The norm of the pull at c = 0, with the best intercept where there is one.
inline double squared_level(const Problem &P) {
    double const total = sum(P.weights);
    bool const centred = P.intercept && total > 0.0;
    double const mean = centred ? dot(P.weights, P.y, P.samples()) / total : 0.0;
    double square = 0.0;
    for (Index i = 0; i < P.samples(); i++) {
        double const pull = P.weights[i] * (P.y[i] - mean);
        square += pull * pull;
    }
    return std::sqrt(square);
}

// Write sum_i w_i z_ij^2 for every atom.
inline void squared_curvatures(const Problem &P, Vector curvatures) {
    for (Index j = 0; j < P.features(); j++) {
        double total = 0.0;
        for (Index i = 0; i < P.samples(); i++)
            total += P.weights[i] * P.atoms(j, i) * P.atoms(j, i);
        curvatures[j] = total;
    }
}

}  // namespace conepursuit::factorization::garrote
