// nanobind's own array object over memory of a C++ vector, its fastest way to be a DLPack producer; and functions that
// take arrays, as its documentation writes them.
#include <algorithm>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

using Image = nb::ndarray<nb::array_api, float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <typename T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

static Image image(size_t height, size_t width) {
    auto pixels = std::make_unique<std::vector<float>>(height * width * 3);
    for (size_t i = 0; i < pixels->size(); i++) (*pixels)[i] = float(i);
    float *data = pixels->data();
    nb::capsule owner(pixels.release(), [](void *p) noexcept { delete static_cast<std::vector<float> *>(p); });
    return Image(data, {height, width, 3}, owner);
}

static float sum(nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu> array) {
    float sum = 0;
    for (size_t i = 0; i < array.size(); i++) sum += array.data()[i];
    return sum;
}

static uint8_t largest(nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> array) {
    return *std::max_element(array.data(), array.data() + array.size());
}

// A copy in row-major order.
template <typename T> static size_t copied(Matrix<const T> array) {
    std::vector<T> copy(array.size());
    auto view = array.view();
    if (view.stride(1) == 1 && view.stride(0) == int64_t(view.shape(1))) {
        std::copy_n(array.data(), array.size(), copy.data());
    } else {
        for (size_t i = 0, k = 0; i < view.shape(0); i++)
            for (size_t j = 0; j < view.shape(1); j++) copy[k++] = view(i, j);
    }
    asm volatile("" : : "r"(copy.data()) : "memory");
    return copy.size();
}

NB_MODULE(peer_nanobind, module) {
    module.def("Image", &image);
    module.def("rank", [](nb::ndarray<float, nb::ndim<2>> array) { return array.ndim(); });
    module.def("rank_3", [](nb::ndarray<const float, nb::ndim<3>> array) { return array.ndim(); });
    module.def("rank_1", [](nb::ndarray<float, nb::ndim<1>> array) { return array.ndim(); });
    module.def("sum", &sum);
    module.def("largest", &largest);
    module.def("copy_u8", &copied<uint8_t>);
    module.def("copy_f32", &copied<float>);
    module.def("copy_f64", &copied<double>);
}
