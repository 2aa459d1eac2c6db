// The fits of many targets under other losses, and the losses themselves, for Python.
#include "../shared/binding.hpp"
#include "many_targets.hpp"

namespace conepursuit {
namespace {

using loss_fits::Loss;

// As `fit_losses` of many_targets.hpp, which says what the arguments are.
void fit_losses(std::int64_t code, double parameter, Array2<D> atoms, Array2<D> targets,
                Array2<D> entry_weights, double penalty, double tol, std::int64_t max_steps,
                Array2<double> c, Array2<double> dual, Array1<double> value, Array1<double> gap,
                Array1<bool> proven, Array1<std::int64_t> status, Array1<std::int64_t> n_iter) {
    Loss const loss{LossCode(code), parameter};
    loss_fits::fit_losses(
        {loss, view(atoms), view(targets), view(entry_weights), penalty}, {tol, max_steps},
        {view(c), view(dual), view(value), view(gap), view(proven), view(status), view(n_iter)});
}

// The slope of a loss, its divergence and that of its conjugate; see divergences.hpp.
double slope(std::int64_t code, double parameter, double y, double x) {
    return loss_fits::slope({LossCode(code), parameter}, y, x);
}

double divergence(std::int64_t code, double parameter, double y, double x, double z) {
    return loss_fits::divergence({LossCode(code), parameter}, y, x, z);
}

double young(std::int64_t code, double parameter, double y, double x, double change) {
    Loss const loss{LossCode(code), parameter};
    return loss_fits::young(loss, y, x, loss_fits::slope(loss, y, x) + change, change);
}

// A name for an array, which must have the right type as it is: a copy would lose what is written.
auto array(const char *name) { return nb::arg(name).noconvert(); }

}  // namespace

void bind_loss_fits(nb::module_ &module) {
    using nb::arg;
    module.def("fit_losses", &fit_losses, Unlocked(), arg("code"), arg("parameter"),
               array("atoms"), array("targets"), array("entry_weights"), arg("penalty"),
               arg("tol"), arg("max_steps"), array("c"), array("dual"), array("value"),
               array("gap"), array("proven"), array("status"), array("n_iter"),
               "Minimise a loss of non-negative combinations of atoms, for many targets.");
    nb::module_ losses = module.def_submodule("losses", "Losses of one entry.");
    losses.def("slope", &slope, arg("code"), arg("parameter"), arg("y"), arg("x"));
    losses.def("divergence", &divergence, arg("code"), arg("parameter"), arg("y"), arg("x"),
               arg("z"));
    losses.def("young", &young, arg("code"), arg("parameter"), arg("y"), arg("x"), arg("change"));
}

}  // namespace conepursuit
