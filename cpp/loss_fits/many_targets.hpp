// Minimise the loss of a non-negative combination of atoms, for many targets.
//
// The objective F is that of `fit.hpp`, the steps are those of `newton.hpp`.
//
// Where F or its gradient is not finite at c = 0, a fit starts at a multiple of the sum of all
// atoms. They are scaled to about the same length first, so that a long one does not hide the
// others. The sum is kept as one more atom, after the others, and loses its weight to them like any
// other. So the models have few atoms from the first step on.
#pragma once

#include "pursuit.hpp"
#include "starts.hpp"

namespace conepursuit::loss_fits {

// Up to this many atoms a Hessian that all targets share is computed once; else in every step.
constexpr Index SHARED = 1024;

// The largest price of the sum of all atoms; an infinite one times a weight of 0 would be NaN.
constexpr double HIGHEST = 1e300;

// The largest exponent of two by which an atom is scaled; a shorter atom stays shorter than 1.
constexpr int MOST = 1000;

// What is fitted: the loss, n atoms of m entries and T targets, one in each row, and the weights of
// their entries, a row for each target or one for all. Weights are not negative; an entry of weight
// 0 does not count. `penalty` is the price of a unit of weight of an atom.
struct Data {
    Loss loss;
    ConstMatrix atoms, targets, entry_weights;
    double penalty;
};

// What is written, a row or an entry for each target: c, which holds the weights to start from, or
// zeros, on entry and the solution on return; the derivative of F by each weight; F, a bound of
// F - F*, and whether that is proved; why the fit ended, and the number of Newton steps.
//
// A fit ends as CONVERGED; as OPTIMAL if rounding leaves no descent, though the gap is larger; as
// STALLED, MAX_STEPS, or INFEASIBLE, when F is infinite and c zero.
struct Results {
    Matrix c, dual;
    Vector value, gap;
    Span<bool> proven;
    Places status, n_iter;
};

// The memory of one call: what all targets share, and the fit of one of them.
//
// `touched` says for each entry whether an atom is not zero there, `shares` are the weights of the
// atoms in their sum, `nothing` are the prices of a problem without a penalty.
struct Memory {
    Table<double> rows, gram;
    Buffer<double> norms, prices, nothing, shares;
    Buffer<bool> touched;
    Fit fit;

    Memory(Index n, Index m, bool shared)
        : rows(padded(n + 1) + WIDTH, padded(m)), gram(shared ? n : 0, shared ? n : 0),
          norms(n + 1), prices(n + 1), nothing(n + 1), shares(n), touched(m), fit(n, m) {}
};

// The norm over the entries with weight; squares do not overflow or underflow.
inline double length(ConstVector row, ConstVector weights) {
    double largest = 0.0, total = 0.0;
    for (Index i = 0; i < row.size(); i++)
        if (weights[i] > 0.0) largest = std::max(largest, std::fabs(row[i]));
    if (!(largest > 0.0)) return largest;
    for (Index i = 0; i < row.size(); i++)
        if (weights[i] > 0.0) total += square(row[i] / largest);
    return largest * std::sqrt(total);
}

// Minimises F for every row of the targets.
class ManyTargets {
  public:
    ManyTargets(const Data &data, Limits limits, const Results &results)
        : data(data), limits(limits), results(results), n(data.atoms.rows()),
          m(data.atoms.columns()), shared(data.loss.code == SQUARED &&
                                          data.entry_weights.rows() == 1 && n <= SHARED),
          memory(n, m, shared), S(memory.fit),
          P{data.loss, data.penalty, memory.rows, memory.norms, memory.prices, {}} {
        copy_atoms();
        if (shared) share_hessian();
    }

    // Fit all targets, one after the other.
    void run() {
        for (Index i = 0; i < data.targets.rows(); i++) fit(i);
    }

  private:
    // Copy the atoms and their prices. Norms and the sum of all atoms are left to `measure`.
    void copy_atoms() {
        for (Index j = 0; j < n; j++) {
            P.prices[j] = data.penalty;
            for (Index i = 0; i < m; i++) {
                P.rows(j, i) = data.atoms(j, i);
                memory.touched[i] |= data.atoms(j, i) != 0.0;
            }
        }
    }

    // Compute the Hessian that all targets share, and give it to the problem.
    void share_hessian() {
        for (Index i = 0; i < m; i++)
            S.w[i] = memory.touched[i] ? data.entry_weights(0, i) : 0.0;
        bend(P, S, {0.0, false});
        for (Index j = 0; j < n; j++) S.members[j] = j;
        build(P, S, n);
        for (Index a = 0; a < n; a++)
            for (Index b = 0; b < n; b++) memory.gram(a, b) = S.Q(a, b);
        P.gram = memory.gram;
    }

    // Copy target i into S; return the loss of the entries at which all atoms are zero.
    //
    // There x = 0 whatever the weights c are, and S gives these entries the weight 0. Their loss is
    // infinite if that of one of them is at x = 0.
    double load(Index i) {
        ConstVector const target = data.targets[i];
        ConstVector const weights = data.entry_weights[i % data.entry_weights.rows()];
        double constant = 0.0;
        for (Index k = 0; k < m; k++) {
            bool const touched = memory.touched[k];
            S.y[k] = target[k];
            S.w[k] = touched ? weights[k] : 0.0;
            if (weights[k] > 0.0 && !touched) constant += weights[k] * loss(P.loss, target[k], 0.0);
        }
        return constant;
    }

    // Write the norms of the atoms over the entries with weight, and the sum of all atoms into P.
    //
    // `shares` receives the weights of the atoms in that sum: powers of two that bring them to
    // about length 1, and 0 for zero atoms.
    void measure() {
        P.rows[n].fill(0.0);
        P.prices[n] = 0.0;
        for (Index j = 0; j < n; j++) {
            P.norms[j] = length(P.rows[j], S.w);
            memory.shares[j] = 0.0;
            if (P.norms[j] > 0.0) {
                int exponent = 0;
                std::frexp(P.norms[j], &exponent);
                memory.shares[j] = std::ldexp(1.0, std::min(-exponent, MOST));
            }
            add_row(memory.shares[j], P.rows[j], P.rows[n]);
            P.prices[n] = std::min(P.prices[n] + memory.shares[j] * P.penalty, HIGHEST);
        }
        P.norms[n] = length(P.rows[n], S.w);
    }

    // Look for a combination of the atoms that is positive at the entries with weight, and start at
    // a multiple of it; false if none was found.
    bool begin_inside(Index i) {
        Problem const positive{{ONE_SIDED, 0.0}, 0.0, P.rows, P.norms, memory.nothing, {}};
        double const half = level(S);
        pursue(positive, S, {0.4 / half, limits.max_steps}, half, 0.0);
        load(i);
        return scale(P, S);
    }

    // Fit target i and write its results.
    void fit(Index i) {
        double const constant = load(i);
        if (i < data.entry_weights.rows()) measure();
        if (constant < INFINITE && (begin(P, S) || begin_inside(i))) {
            double const start = objective(P, S);
            double const fall = resume(P, S, results.c[i], start);
            Ending const ending = pursue(P, S, limits, start, fall);
            write(i, ending, objective(P, S) + constant);
        } else {
            S.c.span().fill(0.0);
            S.dual.span().fill(std::numeric_limits<double>::quiet_NaN());
            write(i, {INFEASIBLE, INFINITE, false, 0}, INFINITE);
        }
    }

    // Write how the fit of target i ended, its weights and the derivatives.
    void write(Index i, Ending ending, double value) {
        results.status[i] = ending.code;
        results.gap[i] = ending.gap;
        results.proven[i] = ending.proven;
        results.n_iter[i] = ending.steps;
        results.value[i] = value;
        for (Index j = 0; j < n; j++) {
            results.c(i, j) = S.c[j] + S.c[n] * memory.shares[j];
            results.dual(i, j) = S.dual[j];
        }
    }

    Data data;
    Limits limits;
    Results results;
    Index n, m;
    bool shared;
    Memory memory;
    Fit &S;
    Problem P;
};

// Minimise F for every row of the targets.
inline void fit_losses(const Data &data, Limits limits, const Results &results) {
    ManyTargets(data, limits, results).run();
}

}  // namespace conepursuit::loss_fits
