// The functions for matrix factorisations, the garrote and their baselines, as Python sees them.
//
// Arrays that a function changes must be C-contiguous float64 as they are; others may be converted.
// Of two functions with one name, that for int64 comes first, so that indices which need a copy are
// never narrowed.
#include "../shared/binding.hpp"
#include "cyclic_kl.hpp"
#include "divergence_slopes.hpp"
#include "divergence_updates.hpp"
#include "divergence_weights.hpp"
#include "garrote_sweeps.hpp"
#include "hals.hpp"
#include "observed.hpp"

namespace conepursuit {
namespace {

using namespace factorization;
using namespace nb::literals;

using In1 = const Array1<D> &;
using In2 = const Array2<D> &;
using InOut1 = const Array1<double> &;
using InOut2 = const Array2<double> &;
template <class N>
using Ints = const Array1<const N> &;

template <class N>
Pattern<N> pattern_of(Ints<N> indices, Ints<N> indptr) {
    return {view(indices), view(indptr)};
}

// A new array for Python, and its memory for the kernel.
struct Owned {
    explicit Owned(Index n) : data(new double[static_cast<std::size_t>(n > 0 ? n : 1)]), n(n) {}
    auto release() const {
        nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
        return nb::ndarray<nb::numpy, double, nb::ndim<1>>(data, {std::size_t(n)}, owner);
    }
    double *data;
    Index n;
};

template <class N>
auto entries_at(Ints<N> indices, Ints<N> indptr, In2 F, In2 G) {
    Owned const out(view(indices).size());
    {
        nb::gil_scoped_release const unlocked;
        entries(pattern_of<N>(indices, indptr), view(F), view(G), Vector(out.data, out.n));
    }
    return out.release();
}

// Functions that read sparse data with indices of type N.
template <class N>
void bind_sparse(nb::module_ &module) {
    module.def("entries", entries_at<N>, "indices"_a, "indptr"_a, "F"_a, "G"_a);
    module.def(
        "sweep_observed",
        [](In1 data, In1 weights, Ints<N> indices, Ints<N> indptr, InOut2 F, In2 G, double l1,
           double l2, Index sweeps) {
            weighted::Stored<N> const X{view(data), view(weights), pattern_of<N>(indices, indptr)};
            weighted::sweep_observed(X, view(F), view(G), {l1, l2, sweeps});
        },
        "data"_a, "weights"_a, "indices"_a, "indptr"_a, "F"_a.noconvert(), "G"_a, "l1"_a, "l2"_a,
        "sweeps"_a, Unlocked());
    module.def(
        "observed_value",
        [](In1 data, In1 weights, Ints<N> indices, Ints<N> indptr, In2 F, In2 G, double l1,
           double l2) {
            weighted::Stored<N> const X{view(data), view(weights), pattern_of<N>(indices, indptr)};
            return weighted::observed_value(X, view(F), view(G), l1, l2);
        },
        "data"_a, "weights"_a, "indices"_a, "indptr"_a, "F"_a, "G"_a, "l1"_a, "l2"_a, Unlocked());
    module.def(
        "update_sparse",
        [](In1 data, Ints<N> indices, Ints<N> indptr, InOut2 F, In2 G, In1 sums, double l1,
           double l2, bool step, bool evaluate) {
            return divergence::update_sparse(view(data), pattern_of<N>(indices, indptr), view(F),
                                             view(G), view(sums), {l1, l2, step, evaluate});
        },
        "data"_a, "indices"_a, "indptr"_a, "F"_a.noconvert(), "G"_a, "sums"_a, "l1"_a, "l2"_a,
        "step"_a, "evaluate"_a, Unlocked());
    module.def(
        "fit_rows",
        [](In1 data, Ints<N> indices, Ints<N> indptr, InOut2 F, In2 G, double l1, double l2,
           double tolerance, Index max_sweeps) {
            return row_weights::fit_rows(view(data), pattern_of<N>(indices, indptr), view(F),
                                         view(G), {l1, l2, tolerance, max_sweeps});
        },
        "data"_a, "indices"_a, "indptr"_a, "F"_a.noconvert(), "G"_a, "l1"_a, "l2"_a, "tolerance"_a,
        "max_sweeps"_a, Unlocked());
}

// One of the sweeps over a factor with weighted dense data.
template <auto Sweep>
void bind_weighted(nb::module_ &module, const char *name) {
    module.def(
        name,
        [](In2 X, In2 M, InOut2 F, In2 G, double l1, double l2, Index sweeps) {
            Sweep(view(X), view(M), view(F), view(G), {l1, l2, sweeps});
        },
        "X"_a, "M"_a, "F"_a.noconvert(), "G"_a, "l1"_a, "l2"_a, "sweeps"_a, Unlocked());
}

// Least squares, with and without weights.
void bind_squared(nb::module_ &module) {
    module.def(
        "hals",
        [](In2 gram, In2 target, InOut2 F, Index sweeps) {
            hals(view(gram), view(target), view(F), sweeps);
        },
        "gram"_a, "target"_a, "F"_a.noconvert(), "sweeps"_a, Unlocked());
    module.def(
        "greedy_sweep",
        [](In2 gram, In2 target, InOut2 F, double l1, double l2, double tolerance,
           Index max_inner) {
            return greedy_sweep(view(gram), view(target), view(F), l1, l2, tolerance, max_inner);
        },
        "gram"_a, "target"_a, "F"_a.noconvert(), "l1"_a, "l2"_a, "tolerance"_a, "max_inner"_a,
        Unlocked());
    bind_weighted<weighted::sweep_weighted>(module, "sweep_weighted");
    bind_weighted<weighted::sweep_by_residuals>(module, "sweep_by_residuals");
    bind_weighted<weighted::sweep_by_grams>(module, "sweep_by_grams");
    module.def(
        "weighted_value",
        [](In2 X, In2 M, In2 F, In2 G, double l1, double l2) {
            return weighted::weighted_value(view(X), view(M), view(F), view(G), l1, l2);
        },
        "X"_a, "M"_a, "F"_a, "G"_a, "l1"_a, "l2"_a, Unlocked());
    module.attr("COMPONENTS") = weighted::COMPONENTS;
}

// Write the slopes of the divergence as numbers of type T.
template <class T>
void bind_slopes(nb::module_ &module) {
    module.def(
        "slopes",
        [](In2 X, In2 M, In2 Z, const Array2<T> &out) {
            divergence::slopes(view(X), view(M), view(Z), view(out));
        },
        "X"_a, "M"_a, "Z"_a, "out"_a.noconvert(), Unlocked());
}

// The divergence of Kullback and Leibler.
void bind_divergence(nb::module_ &module) {
    module.def(
        "update_dense",
        [](In2 X, In2 M, InOut2 F, In2 G, double l1, double l2, bool step, bool evaluate) {
            return divergence::update_dense({view(X), view(M)}, view(F), view(G),
                                            {l1, l2, step, evaluate});
        },
        "X"_a, "M"_a, "F"_a.noconvert(), "G"_a, "l1"_a, "l2"_a, "step"_a, "evaluate"_a,
        Unlocked());
    module.def(
        "extrapolate",
        [](In2 fresh, In2 old, double share, double limit, InOut2 out) {
            divergence::extrapolate(view(fresh), view(old), share, limit, view(out));
        },
        "new"_a, "old"_a, "share"_a, "limit"_a, "out"_a.noconvert(), Unlocked());
    bind_slopes<double>(module);
    bind_slopes<float>(module);
    module.def(
        "curvature",
        [](In2 X, In2 M, In2 Z, In1 u, In1 v) {
            return divergence::curvature(view(X), view(M), view(Z), view(u), view(v));
        },
        "X"_a, "M"_a, "Z"_a, "u"_a, "v"_a, Unlocked());
    module.def("minimiser", row_weights::minimiser, "u"_a, "pull"_a, "bend"_a, "c"_a, "q"_a);
    module.def(
        "settle",
        [](In2 H, InOut1 v, InOut1 slope) {
            row_weights::settle({view(H), view(v), view(slope)},
                                row_weights::Space(view(v).size(), 0));
        },
        "H"_a, "v"_a.noconvert(), "slope"_a.noconvert());
    module.def(
        "cyclic_kl_sweep",
        [](In2 X, InOut2 F, In2 G, double floor) {
            cyclic::cyclic_kl_sweep(view(X), view(F), view(G), floor);
        },
        "X"_a, "F"_a.noconvert(), "G"_a, "floor"_a, Unlocked());
}

// The sweeps of the garrote for one loss; b, the number of sweeps and whether they converged.
template <auto Sweeps>
void bind_garrote(nb::module_ &module, const char *name) {
    module.def(
        name,
        [](In2 atoms, In1 y, In1 weights, double penalty, bool intercept, InOut1 c, double b,
           double tol, Index max_sweeps) {
            garrote::Problem const problem{view(atoms), view(y), view(weights), penalty, intercept};
            garrote::Outcome const out = Sweeps(problem, view(c), b, {tol, max_sweeps});
            return std::tuple(out.b, out.sweeps, out.converged);
        },
        "atoms"_a, "y"_a, "weights"_a, "penalty"_a, "intercept"_a, "c"_a.noconvert(), "b"_a,
        "tol"_a, "max_sweeps"_a, Unlocked());
}

}  // namespace

void bind_factorization(nb::module_ &module) {
    bind_sparse<std::int64_t>(module);
    bind_sparse<std::int32_t>(module);
    bind_squared(module);
    bind_divergence(module);
    bind_garrote<garrote::logistic_sweeps>(module, "logistic_sweeps");
    bind_garrote<garrote::squared_sweeps>(module, "squared_sweeps");
    module.def("logistic_curvature", garrote::logistic_curvature, "margin"_a, "reach"_a);
}

}  // namespace conepursuit
