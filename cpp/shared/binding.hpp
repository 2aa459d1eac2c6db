// From NumPy's arrays to those of the kernels. With `define`, arguments must be C-contiguous, and
// nothing is copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <type_traits>
#include <utility>

#include "arrays.hpp"

namespace nb = nanobind;

namespace conepursuit {

template <class T>
using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class T>
Span<T> view(const Array1<T> &a) {
    return {a.data(), static_cast<Index>(a.shape(0))};
}

template <class T>
Grid<T> view(const Array2<T> &a) {
    return {a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1))};
}

using D = const double;
using I = const std::int64_t;

// The interpreter's lock is released while a kernel runs.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// Whether a type is an array: those are never converted, since an output would be a copy.
template <class T>
struct IsArray : std::false_type {};
template <class... Args>
struct IsArray<nb::ndarray<Args...>> : std::true_type {};

template <class T>
auto argument() {
    if constexpr (IsArray<std::decay_t<T>>::value) {
        return nb::arg().noconvert();
    } else {
        return nb::arg();
    }
}

template <class F, class R, class... Args, class... Extra>
void define_as(nb::module_ &module, const char *name, F &&function, R (F::*)(Args...) const,
               const Extra &...extra) {
    module.def(name, std::forward<F>(function), argument<Args>()..., extra...);
}

// Add a function; arrays of another type or layout are refused with a TypeError.
template <class F, class... Extra>
void define(nb::module_ &module, const char *name, F function, const Extra &...extra) {
    define_as(module, name, std::move(function), &F::operator(), extra...);
}

// The functions of each purpose, added to the module by its own file.
void bind_shared(nb::module_ &module);
void bind_least_squares(nb::module_ &module);
void bind_loss_fits(nb::module_ &module);
void bind_factorization(nb::module_ &module);

}  // namespace conepursuit
