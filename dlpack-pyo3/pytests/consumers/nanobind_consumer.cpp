// A C++ library that takes tensors through nanobind and keeps them for a while.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

template <typename Array, bool ReadOnly>
struct Held {
    Array array;

    static void bind(nb::module_ &module, const char *name, const char *function) {
        nb::class_<Held>(module, name)
            .def_prop_ro("pointer", [](const Held &held) { return reinterpret_cast<uintptr_t>(held.array.data()); })
            .def_prop_ro("code", [](const Held &held) { return static_cast<int>(held.array.dtype().code); })
            .def_prop_ro("bits", [](const Held &held) { return static_cast<int>(held.array.dtype().bits); })
            .def_prop_ro("lanes", [](const Held &held) { return static_cast<int>(held.array.dtype().lanes); })
            .def_prop_ro("readonly", [](const Held &) { return ReadOnly; })
            .def_prop_ro("shape", [](const Held &held) { return held.list(&Array::shape); })
            .def_prop_ro("strides", [](const Held &held) { return held.list(&Array::stride); });
        module.def(function, [](Array array) { return Held{std::move(array)}; });
    }

    template <typename Extent>
    nb::tuple list(Extent (Array::*extent)(size_t) const) const {
        nb::list extents;
        for (size_t axis = 0; axis < array.ndim(); axis++)
            extents.append(static_cast<int64_t>((array.*extent)(axis)));
        return nb::tuple(extents);
    }
};

NB_MODULE(nanobind_consumer, module) {
    // What the exit cells hold is held on purpose; it is no fault of a binding.
    nb::set_leak_warnings(false);
    module.attr("version") = NANOBIND_VERSION;
    Held<nb::ndarray<>, false>::bind(module, "Writable", "writable");
    Held<nb::ndarray<nb::ro>, true>::bind(module, "ReadOnly", "readonly");
}
