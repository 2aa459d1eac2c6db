// The loop of Newton steps for one target, until its gap is small enough.
#pragma once

#include "newton.hpp"

namespace conepursuit::loss_fits {

// The limits of a fit: the gap to reach, relative to the fall of F, and the number of Newton steps.
struct Limits {
    double tol;
    std::int64_t max_steps;
};

// What a fit knows of its steps so far.
struct Progress {
    double fall;             // how far F is below the start
    Bend how{1.0, false};    // the curvatures of the next model
    Index passive = 0;       // how many atoms the factor of the last model holds
    int idle = 0;            // steps since F last fell by more than rounding, or the gap was halved
    double best = INFINITE;  // the least gap, up to a factor of two
    std::int64_t steps = 0;
};

// Make one Newton step; return PURSUING, or why there is no further one.
//
// x, g and the derivatives belong to c before; after it only x does. `noise` is the rounding of F.
inline std::int64_t step_once(const Problem &P, Fit &S, Progress &done, double noise) {
    double const tolerance = bend(P, S, done.how);
    Index const k = gather(P, S);
    build(P, S, k);
    done.passive = solve(S.Q, S.descent.span().part(0, k), S.v.span().part(0, k), S.C, S.order, 0,
                         false, tolerance);
    Line const line = look_ahead(P, S, k);
    Step step{0.0, 0.0};
    if (line.steep < 0.0 && done.idle < POLISH) {
        step = search(P, S, line);
        done.fall += step.gain * advance(P, S, k, step.share);
    }
    done.idle = step.gain < noise ? done.idle + 1 : 0;
    done.how.cautious |= step.share < 1.0;
    done.how.share = step.share == 1.0 ? 0.1 * done.how.share : std::min(1.0, 2.0 * done.how.share);
    done.steps += step.share > 0.0;
    if (step.gain != 0.0) return PURSUING;
    return line.steep < -noise ? STALLED : OPTIMAL;
}

// Make Newton steps from c until the gap is at most tol times the fall of F, or its rounding.
//
// `start` is F where its fall is measured from, and `fall` by how much F is less at c.
inline Ending pursue(const Problem &P, Fit &S, Limits limits, double start, double fall) {
    Progress done{.fall = fall};
    std::int64_t code = PURSUING;
    Proof proof{INFINITE, false, 0.0};
    double enough = 0.0;
    while (code == PURSUING) {
        differentiate(P, S);
        double const noise = rounding(P, S);
        enough = std::max(limits.tol * done.fall, noise);
        double const low = (1.0 - DRIFT) * start - done.fall;
        proof = certify(P, S, done.passive, low, enough, false);
        if (proof.gap < 0.5 * done.best) {
            done.best = proof.gap;
            done.idle = 0;
        }
        if (proof.gap <= enough && proof.proven) {
            code = CONVERGED;
        } else if (done.steps >= limits.max_steps) {
            code = MAX_STEPS;
        } else {
            code = step_once(P, S, done, noise);
        }
    }
    if (code != CONVERGED) {
        proof = certify(P, S, done.passive, 0.0, enough, true);
        if (proof.gap <= enough && (proof.proven || code == OPTIMAL)) code = CONVERGED;
    }
    if (proof.proven) {
        proof.gap += allowance(P, S, proof.size, proof.gap);
        proof.proven = proof.gap < INFINITE;
    }
    return {code, proof.gap, proof.proven, done.steps};
}

}  // namespace conepursuit::loss_fits
