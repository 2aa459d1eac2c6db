// Non-negative least squares, for Python.
#include "../shared/binding.hpp"
#include "coordinate.hpp"
#include "few_atoms.hpp"
#include "many_targets.hpp"
#include "one_target.hpp"
#include "sums.hpp"

namespace conepursuit {
namespace {

// The table of supports: M, then shifts, leasts, functionals, bounds, repaired and delicate.
template <class T, class Bits, class Flag>
Supports<T> table_of(const Array3<T> &M, const Array2<T> &shift, const Array2<T> &least,
                     const Array2<T> &functional, const Array2<T> &bounds,
                     const Array1<Bits> &repaired, const Array1<Flag> &delicate) {
    return {M.data(),     view(shift),    view(least),   view(functional),
            view(bounds), view(repaired), view(delicate)};
}

// The rows of an array that is contiguous along one of its axes.
using Rows = nb::ndarray<D, nb::ndim<2>, nb::device::cpu>;

Targets targets_of(const Rows &rows) {
    Index const count = Index(rows.shape(0)), m = Index(rows.shape(1));
    // The stride along an axis of length one says nothing.
    Index const across = count == 1 ? 1 : Index(rows.stride(0));
    Index const along = m == 1 ? 1 : Index(rows.stride(1));
    Targets const out{rows.data(), count, m, across, along};
    if (out.along != 1 && out.across != 1) {
        throw nb::value_error("targets must be contiguous along one of their axes");
    }
    return out;
}

void bind_one_target(nb::module_ &module) {
    define(module, "fit_target", [](Array2<D> atoms, Array1<D> b, Array2<D> G, Array1<double> x,
                                Array1<double> dual, double inexact, Index limit, Index max_steps) {
        Result found;
        {
            nb::gil_scoped_release unlocked;
            found = fit_target(view(atoms), view(b), view(G), view(x), view(dual), inexact, limit,
                               max_steps);
        }
        return std::make_tuple(found.rnorm, found.gap.value, found.gap.proven,
                               std::int64_t(found.ended.code), found.ended.steps);
    });
    define(module, "fit", [](Array2<D> atoms, Array1<D> b, Array1<D> c, Array1<D> inverse_norms,
                         Array2<D> G, Array1<double> x, Array2<double> C,
                         Array1<std::int64_t> order, Array1<double> y, Index k, Array1<double> r,
                         Array1<double> p, Array1<double> g, bool orthogonal, Index limit,
                         Index max_steps) {
        Fitted found;
        {
            nb::gil_scoped_release unlocked;
            Index const m = Index(b.shape(0)), size = std::min(m, Index(x.shape(0))) + 1;
            Buffer<double> f(m), low(m), dx(size);
            Data const data{view(atoms), view(b), view(c), view(inverse_norms), view(G)};
            Answer const out{view(r), view(g), f, low, dx};
            found = fit(data, view(x), view(C), view(order), view(y), k, view(p), out, orthogonal,
                        limit, max_steps);
        }
        return std::make_tuple(found.k, std::int64_t(found.ended.code), found.ended.steps,
                               found.orthogonal);
    });
    define(module, "sweeps", [](Array2<D> atoms, Array1<D> inverse_norms, Array1<double> x,
                            Array1<double> r, double target, double pace, Index most) {
        nb::gil_scoped_release unlocked;
        Swept const found =
            sweeps(view(atoms), view(inverse_norms), view(x), view(r), target, pace, most);
        return std::make_tuple(found.square, found.count);
    });
}

void bind_proofs(nb::module_ &module) {
    define(module, "least_tilt", [](Array1<D> g, Array1<D> g_error, Array1<D> s, Array1<D> s_error) {
        return least_tilt(view(g), view(g_error), view(s), view(s_error));
    });
    define(module, "tilted_gap", [](Array1<D> g, Array1<D> g_error, Array1<D> s, Array1<D> s_error,
                                Array1<D> x, double length, double distance) {
        return tilted_gap(view(g), view(g_error), view(s), view(s_error), view(x), length, distance);
    });
    define(module, "settled", [](double gap, Array1<D> g, Array1<D> norms, Array1<D> x, double length,
                             double size) {
        Gap const found = settled(gap, view(g), view(norms), view(x), length, size);
        return std::make_tuple(found.value, found.proven);
    });
    define(module, "functional", [](Array2<D> atoms, Array1<D> norms, Array1<I> order, Index k,
                                Array2<D> C, Array1<double> t) {
        Buffer<double> z(k);
        functional(view(atoms), view(norms), view(order), k, view(C), z, view(t));
    });
    define(module, "accurate_residual", [](Array2<D> atoms, Array1<D> b, Array1<D> r, Array1<D> x,
                                       Array1<I> order, Index k, Array1<double> out) {
        Buffer<double> low(Index(b.shape(0)));
        accurate_residual(view(atoms), view(b), view(r), view(x), view(order), k, view(out), low);
    });
    define(module, "accurate_slopes", [](Array2<D> atoms, Array1<I> order, Index k, Array1<D> r,
                                     Array1<double> out) {
        accurate_slopes(view(atoms), view(order), k, view(r), view(out));
    });
    define(module, "accurate_dot", [](Array1<D> a, Array1<D> b) { return accurate_dot(view(a), view(b)); });
    define(module, "lane_slopes", [](Array2<D> atoms, Array1<I> order, Index k, Array1<D> r,
                                 Array1<double> g) {
        lane_slopes(view(atoms), view(order), k, view(r), view(g));
    });
}

void bind_tables(nb::module_ &module) {
    define(module, "tabulate",
        [](Array2<D> G, Index n, Index m, Array3<double> M, Array2<double> shift,
           Array2<double> least, Array2<double> products, Array2<double> bounds,
           Array1<std::uint64_t> repaired, Array1<bool> delicate) {
            Tabulator(view(G), n, m,
                      table_of(M, shift, least, products, bounds, repaired, delicate))
                .fill();
        });
    define(module, "tabulate_sum",
        [](Array1<D> norms, Index m, double raised, double s, bool at_most, Array3<double> M,
           Array2<double> shift, Array2<double> least, Array2<double> products,
           Array2<double> bounds, Array1<std::uint64_t> repaired, Array1<bool> delicate) {
            SumTabulator(view(norms), m, raised, {s, at_most},
                         table_of(M, shift, least, products, bounds, repaired, delicate))
                .fill();
        });
    define(module, "sum_gap", [](Array1<D> g, Array1<D> g_error, double offset, Array1<D> x,
                             double s, bool at_most, double distance) {
        return sum_gap(view(g), view(g_error), offset, view(x), {s, at_most}, distance);
    });
    define(module, "close_sum", [](Array1<double> x, double s) { return close_sum(view(x), s); });
}

void bind_many_targets(nb::module_ &module) {
    define(module, "fit_few",
        [](double s, bool at_most, Array1<double> multipliers, Array2<D> atoms, Rows targets,
           Array2<D> G, Array1<D> sums, Array3<D> M, Array2<D> shift, Array2<D> least,
           Array2<D> products, Array2<D> bounds, Array1<const std::uint64_t> repaired,
           Array1<const bool> delicate, Array2<double> X, Array2<double> duals,
           Array1<double> rnorms, Array1<double> gaps, Array1<bool> proven,
           Array1<std::int64_t> codes, Array1<std::int64_t> counts) {
            auto few = std::make_unique<FewAtoms>(
                view(atoms), view(G), view(sums),
                table_of(M, shift, least, products, bounds, repaired, delicate),
                WeightSum{s, at_most}, Index(X.shape(1)), Index(targets.shape(1)));
            few->fit(targets_of(targets), {view(X), view(duals), view(rnorms), view(gaps), view(proven),
                                     view(codes), view(counts), view(multipliers)});
        },
        Unlocked());
    define(module, "fit_targets",
        [](double s, bool at_most, Array1<double> multipliers, double raised, Array2<D> atoms,
           Rows targets, Array2<D> G, Array1<D> inverse_norms, Array1<D> sums, Index limit,
           Index max_steps, Array2<double> X, Array2<double> duals, Array1<double> rnorms,
           Array1<double> gaps, Array1<bool> proven, Array1<std::int64_t> codes,
           Array1<std::int64_t> counts) {
            Dictionary const given{view(atoms), view(G), view(inverse_norms), view(sums),
                                   {s, at_most}, raised};
            fit_targets(given, targets_of(targets), limit, max_steps,
                        {view(X), view(duals), view(rnorms), view(gaps), view(proven), view(codes),
                         view(counts), view(multipliers)});
        },
        Unlocked());
}

}  // namespace

void bind_least_squares(nb::module_ &module) {
    bind_one_target(module);
    bind_proofs(module);
    bind_tables(module);
    bind_many_targets(module);
}

}  // namespace conepursuit
