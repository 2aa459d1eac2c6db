// Newton steps on an active set for the objective F of `fit.hpp`.
//
// A step minimises a quadratic model of F over c >= 0, among the atoms that have weight and those
// that descend, and searches the line to its solution; F never rises. The fall of F is summed from
// divergences, in which nothing cancels, and not computed as a difference of values.
#pragma once

#include "../shared/quadratic_programs.hpp"
#include "allowance.hpp"
#include "certificate.hpp"

namespace conepursuit::loss_fits {

// Slope of F at the end of a step, relative to the size of its slope at the start of the line. A
// step at which F has fallen is accepted if it is at most this; if F rises more steeply, a shorter
// step is tried.
constexpr double LEVELLED = 0.1;

// Share of its distance to the end of the domain that an entry with y > 0 keeps in a step. A step
// that would leave less is shortened: next to the end, Newton's method only doubles x in a step. An
// entry with y = 0 may go to the end.
constexpr double SHORE = 0.01;

// Share of F at the start by which the fall of F, summed over the steps, may be wrong.
constexpr double DRIFT = 1e-6;

// A fit ends after so many steps that neither lower F by more than rounding nor halve the gap.
constexpr int POLISH = 4;

// Steps that are tried on a line, at most; if none is accepted, none is made.
constexpr int TRIALS = 60;

// Share of the largest x below which an entry with y = 0 counts as this share in the model, since
// its curvature may be infinite at x = 0.
constexpr double LEAST_ENTRY = 1e-9;

// How curved a model is: between the loss, at `share` 0, and its chords, which take account of the
// loss further away, at `share` 1. A `cautious` model is nowhere less curved than the loss.
struct Bend {
    double share;
    bool cautious;
};

// The slopes of F and of the penalty on the line to the fit ahead.
struct Line {
    double steep, dearer;
};

// The share of a line to go, and by how much F falls; both 0 if no step is accepted.
struct Step {
    double share, gain;
};

// Why a fit ended, its gap, whether that is proved, and the number of steps.
struct Ending {
    std::int64_t code;
    double gap;
    bool proven;
    std::int64_t steps;
};

// The largest entry; NaN if one is.
inline double largest(ConstVector x) {
    double most = -INFINITE;
    for (double const entry : x) {
        if (std::isnan(entry)) return entry;
        most = std::max(most, entry);
    }
    return most;
}

// The curvature of the model at an entry, for a weight of 1.
inline double model_curvature(Loss l, double y, double x, Bend how) {
    double const bent = curvature(l, y, x);
    if (!(how.share > 0.0)) return bent;
    double const more = how.cautious ? std::max(chord(l, y, x), bent) : chord(l, y, x);
    return (1.0 - how.share) * bent + how.share * more;  // in the difference one may be lost
}

// Write the curvatures of the model as `metric`; return the rounding of slopes against them.
//
// By the inequality of Cauchy and Schwarz the rounding of <a, g> is at most the returned number
// times the length of a in the metric.
inline double bend(const Problem &P, Fit &S, Bend how) {
    bool const ends = P.loss.code == KULLBACK_LEIBLER || P.loss.code == BETA;
    double const least = ends ? LEAST_ENTRY * largest(S.x) : 0.0;
    double squares = 0.0;
    for (Index i = 0; i < S.width; i++) {
        S.metric[i] = 0.0;
        if (S.w[i] > 0.0) {
            double const x = S.y[i] == 0.0 ? std::max(S.x[i], least) : S.x[i];
            S.metric[i] = S.w[i] * model_curvature(P.loss, S.y[i], x, how);
            if (S.metric[i] > 0.0) squares += square(S.g[i]) / S.metric[i];
        }
    }
    return 4.0 * EPS * std::sqrt(squares);
}

// Whether atom j descends: its slope, a sum of terms g_i a_i, is above the rounding of that sum.
//
// The rounding is bounded by the product of the norms, `noise` times that of the atom, and, only
// where the slope is below that and the atom has no weight, by the sum of |g_i a_i|. The latter is
// much less where entries have little weight or none, or an atom is small where g is large.
inline bool descends(const Problem &P, const Fit &S, Index j, double noise) {
    double const least = -S.dual[j] - 4.0 * EPS * P.penalty;
    if (least > noise * P.norms[j]) return true;
    if (!(least > 0.0 && S.c[j] == 0.0)) return false;
    ConstVector const row = P.rows[j];
    double total = 0.0;
    for (Index i = 0; i < S.width; i++) total += std::fabs(S.g[i] * row[i]);
    return least > 4.0 * EPS * total;
}

// List the atoms that have weight or descend, with their weights; return how many they are.
//
// The sum of all atoms is listed only if it has weight.
inline Index gather(const Problem &P, Fit &S) {
    Index k = 0;
    Index const last = P.norms.size() - 1;
    double const noise = 4.0 * EPS * norm(S.g);
    for (Index j = 0; j <= last; j++) {
        if (S.c[j] > 0.0 || (j < last && descends(P, S, j, noise))) {
            S.members[k] = j;
            S.v[k] = S.c[j];
            S.descent[k] = S.dual[j];
            k++;
        }
    }
    return k;
}

// Write the entries at which the model is curved as `where`, and the roots of the metric there into
// t; return how many they are.
inline Index locate_curved(Fit &S) {
    Index count = 0;
    for (Index i = 0; i < S.width; i++) {
        if (S.metric[i] > 0.0) {
            S.t[count] = std::sqrt(S.metric[i]);
            S.where[count] = i;
            count++;
        }
    }
    return count;
}

// Write the Hessian of the model, A' diag(metric) A, for its k members.
//
// It is not inlined: copies of its sums may be vectorised in different ways, and a Hessian that
// targets share would then differ in its last bits from the same one of a target alone.
[[gnu::noinline]] inline void build(const Problem &P, Fit &S, Index k) {
    if (!P.gram.empty()) {
        for (Index a = 0; a < k; a++)
            for (Index b = 0; b < k; b++) S.Q(a, b) = P.gram(S.members[a], S.members[b]);
        return;
    }
    Index const count = locate_curved(S);
    for (Index a = 0; a < k; a++) {
        ConstVector const row = P.rows[S.members[a]];
        Vector const scaled = S.B[a];
        for (Index i = 0; i < count; i++) scaled[i] = S.t[i] * row[S.where[i]];
    }
    for (Index a = 0; a < k; a++) {
        multiply(S.B, S.B[a], a + 1, count, S.Q[a]);
        for (Index b = 0; b < a; b++) S.Q(b, a) = S.Q(a, b);
    }
}

// Write the fit of the weights v as `ahead`; return the slopes of F and the penalty to it.
inline Line look_ahead(const Problem &P, Fit &S, Index k) {
    Line line{0.0, 0.0};
    S.ahead.span().fill(0.0);
    for (Index a = 0; a < k; a++) {
        Index const atom = S.members[a];
        double const weight = S.v[a];
        line.steep += (weight - S.c[atom]) * S.dual[atom];
        line.dearer += (weight - S.c[atom]) * P.prices[atom];
        if (weight != 0.0) add_row(weight, P.rows[atom], S.ahead);
    }
    return line;
}

// The longest step, at most 1, that stays in the domain and keeps off its end (`SHORE`).
inline double longest_step(const Problem &P, const Fit &S) {
    double step = 1.0;
    for (Index i = 0; i < S.width; i++) {
        if (S.w[i] > 0.0) {
            double const room = margin(P.loss, S.y[i], S.x[i]);
            double const left = margin(P.loss, S.y[i], S.ahead[i]);
            if (left < room && !(left > (S.y[i] > 0.0 ? SHORE * room : 0.0)))
                step = std::min(step, (1.0 - SHORE) * room / (S.x[i] - S.ahead[i]));
        }
    }
    return step;
}

// Entry i of the fit after a step on the line to the fit ahead.
inline double between(const Fit &S, double step, Index i) {
    return (1.0 - step) * S.x[i] + step * S.ahead[i];
}

// The divergence D of the fit after a step from x.
inline double rise_over(const Problem &P, const Fit &S, double step) {
    double rise = 0.0;
    for (Index i = 0; i < S.width; i++)
        if (S.w[i] > 0.0)
            rise += S.w[i] * divergence(P.loss, S.y[i], between(S, step, i), S.x[i]);
    return rise;
}

// By how much F falls after a step, as a difference of values.
//
// It serves where the slope at x is so steep that the digits of the fall are lost beside it.
inline double fall_over(const Problem &P, const Fit &S, Line line, double step) {
    double fall = -step * line.dearer;
    for (Index i = 0; i < S.width; i++)
        if (S.w[i] > 0.0)
            fall += S.w[i] *
                    (loss(P.loss, S.y[i], S.x[i]) - loss(P.loss, S.y[i], between(S, step, i)));
    return fall;
}

// The share of the way from x to the fit ahead to go, and by how much F falls.
//
// With the divergence D from x, F falls by -step steep - D. A step is accepted if D is at most nine
// tenths of -step steep, or if F has fallen and its slope is about level at the end of the step
// (`LEVELLED`). The second test serves where the slope at x says little about F further on. Where
// the digits of the gain are lost beside that slope, a step is accepted if F still falls at its end.
// Otherwise Newton's method for the least F on the line proposes a shorter step.
inline Step search(const Problem &P, const Fit &S, Line line) {
    double step = longest_step(P, S);
    for (int trial = 0; trial < TRIALS; trial++) {
        double const rise = rise_over(P, S, step), gain = -step * line.steep - rise;
        if (rise <= -0.9 * step * line.steep) return {step, gain};
        double tangent = line.dearer, bent = 0.0;
        for (Index i = 0; i < S.width; i++) {
            if (S.w[i] > 0.0) {
                double const x = between(S, step, i), move = S.ahead[i] - S.x[i];
                tangent += S.w[i] * slope(P.loss, S.y[i], x) * move;
                bent += S.w[i] * curvature(P.loss, S.y[i], x) * square(move);
            }
        }
        if (tangent <= -LEVELLED * line.steep && gain > 64.0 * EPS * std::fabs(line.steep))
            return {step, gain};
        if (tangent <= 0.0) {  // F has fallen all the way, as it is convex
            double const fall = fall_over(P, S, line, step);
            if (fall > 0.0) return {step, fall};
        }
        double const newton = bent > 0.0 ? step - tangent / bent : 0.0;
        step = std::min(std::max(newton, 0.1 * step), 0.9 * step);
    }
    return {0.0, 0.0};
}

// Move c by the step, and write x; shorten it if rounding would lead x out of the domain.
//
// Returns the share of the step that was made. As F is convex, at least this share of its fall is
// kept.
inline double advance(const Problem &P, Fit &S, Index k, double step) {
    for (Index a = 0; a < k; a++) S.descent[a] = S.c[S.members[a]];
    double share = 1.0;
    while (true) {
        double const part = share * step;
        for (Index a = 0; a < k; a++) {
            double const mixed = (1.0 - part) * S.descent[a] + part * S.v[a];
            S.c[S.members[a]] = part == 1.0 ? S.v[a] : mixed;
        }
        combine(P, S.c, S.x);
        if (share == 0.0 || inside(P, S)) return share;
        share = share > EPS ? 0.9 * share : 0.0;
    }
}

}  // namespace conepursuit::loss_fits
