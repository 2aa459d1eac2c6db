// Numbers that kernels share with conepursuit/kernels/constants.py, which says what they mean.
#pragma once

#include <cstdint>

namespace conepursuit {

enum Code : std::int64_t {
    OPTIMAL = 0,
    STALLED = 1,
    MAX_STEPS = 2,
    MAX_ATOMS = 3,
    CONVERGED = 4,
    IRREGULAR = -1,
    REDO = -1,
    PURSUING = -2,
    INFEASIBLE = -3,
};

enum LossCode : std::int64_t { SQUARED, LOGISTIC, KULLBACK_LEIBLER, HUBER, BETA, ONE_SIDED };

constexpr double SMALLEST_SQUARE = 1e-260, LARGEST_SQUARE = 1e260;
constexpr double DESCENT_ROUNDINGS = 4.0, LEVEL_ROUNDINGS = 64.0;
constexpr double ILL_CONDITIONED = 1e-9, DEPENDENT_SQUARE = 32.0 * 0x1p-52;
constexpr std::int64_t FEW_ATOMS = 8, BOUNDS = 5;

}  // namespace conepursuit
