// Triangular factors, small quadratic programmes and passes over a matrix, for Python.
#include "binding.hpp"
#include "constants.hpp"
#include "passes.hpp"
#include "quadratic_programs.hpp"
#include "triangular.hpp"

namespace conepursuit {
namespace {

template <class T>
void bind_passes(nb::module_ &module) {
    define(module, "survey_rows",
        [](Array2<const T> A, Array1<D> b, Array1<double> products, Array1<double> squares,
           Array1<double> sums) {
            survey_rows(view(A), view(b), view(products), view(squares), view(sums));
        },
        Unlocked());
    define(module, "survey_columns",
        [](Array2<const T> atoms, Array1<D> b, Array1<double> products, Array1<double> squares,
           Array1<double> sums) {
            survey_columns(view(atoms), view(b), view(products), view(squares), view(sums));
        },
        Unlocked());
    define(module, "transposed_times",
        [](Array2<const T> A, Array1<D> r, Array1<double> out) {
            transposed_times(view(A), view(r), view(out));
        },
        Unlocked());
    define(module, "times",
        [](Array2<const T> A, Array1<D> x, Array1<double> out) {
            times(view(A), view(x), view(out));
        },
        Unlocked());
}

// The numbers of constants.hpp by name, for the test that compares them with constants.py.
nb::dict numbers() {
    nb::dict all;
    auto const put = [&](const char *name, auto value) { all[name] = value; };
    put("OPTIMAL", std::int64_t(OPTIMAL)), put("STALLED", std::int64_t(STALLED));
    put("MAX_STEPS", std::int64_t(MAX_STEPS)), put("MAX_ATOMS", std::int64_t(MAX_ATOMS));
    put("CONVERGED", std::int64_t(CONVERGED)), put("IRREGULAR", std::int64_t(IRREGULAR));
    put("REDO", std::int64_t(REDO)), put("INFEASIBLE", std::int64_t(INFEASIBLE));
    put("SQUARED", std::int64_t(SQUARED)), put("LOGISTIC", std::int64_t(LOGISTIC));
    put("KULLBACK_LEIBLER", std::int64_t(KULLBACK_LEIBLER)), put("HUBER", std::int64_t(HUBER));
    put("BETA", std::int64_t(BETA)), put("ONE_SIDED", std::int64_t(ONE_SIDED));
    put("SMALLEST_SQUARE", SMALLEST_SQUARE), put("LARGEST_SQUARE", LARGEST_SQUARE);
    put("DESCENT_ROUNDINGS", DESCENT_ROUNDINGS), put("LEVEL_ROUNDINGS", LEVEL_ROUNDINGS);
    put("ILL_CONDITIONED", ILL_CONDITIONED), put("DEPENDENT_SQUARE", DEPENDENT_SQUARE);
    put("WIDTH", std::int64_t(WIDTH)), put("FEW_ATOMS", FEW_ATOMS), put("BOUNDS", BOUNDS);
    put("EPS", EPS);
    return all;
}

}  // namespace

void bind_shared(nb::module_ &module) {
    module.attr("numbers") = numbers();
    bind_passes<double>(module);
    bind_passes<float>(module);
    define(module, "forward_solve", [](Array2<D> C, Index k, Array1<double> y) {
        forward_solve(view(C), k, view(y));
    });
    define(module, "backward_solve", [](Array2<D> C, Index k, Array1<double> y) {
        backward_solve(view(C), k, view(y));
    });
    define(module, "append", [](Array2<double> C, Array1<std::int64_t> order, Index k, Array1<D> gram,
                            Index atom, double floor) {
        return append(view(C), view(order), k, view(gram), atom, floor);
    });
    define(module, "remove", [](Array2<double> C, Array1<std::int64_t> order, Index k, Index place,
                            Array1<double> cosines, Array1<double> sines) {
        remove(view(C), view(order), k, place, view(cosines), view(sines));
    });
    define(module, "rotate", [](Array1<double> y, Index k, Index place, Array1<D> cosines,
                            Array1<D> sines) {
        rotate(view(y), k, place, view(cosines), view(sines));
    });
    define(module, "solve", [](Array2<D> Q, Array1<double> gradient, Array1<double> weights,
                           Array2<double> C, Array1<std::int64_t> order, Index k, bool free_sign,
                           double tolerance) {
        return solve(view(Q), view(gradient), view(weights), view(C), view(order), k, free_sign,
                     tolerance);
    });
}

}  // namespace conepursuit
