// The extension module; it is built once for each level of the processor, under another name.
#include "shared/binding.hpp"

NB_MODULE(KERNELS, module) {
    nb::set_leak_warnings(false);
    module.doc() = "The compiled loops of conepursuit; see the folder cpp.";
    auto const purpose = [&](const char *name, void (*bind)(nb::module_ &)) {
        nb::module_ part = module.def_submodule(name);
        bind(part);
    };
    purpose("shared", conepursuit::bind_shared);
    purpose("least_squares", conepursuit::bind_least_squares);
    purpose("loss_fits", conepursuit::bind_loss_fits);
    purpose("factorization", conepursuit::bind_factorization);
}
