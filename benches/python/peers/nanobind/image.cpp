// nanobind's own array object over memory of a C++ vector: its fastest way to be a DLPack producer.
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

using Image = nb::ndarray<nb::array_api, float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

static Image image(size_t height, size_t width) {
    auto pixels = std::make_unique<std::vector<float>>(height * width * 3);
    for (size_t i = 0; i < pixels->size(); i++) (*pixels)[i] = float(i);
    float *data = pixels->data();
    nb::capsule owner(pixels.release(), [](void *p) noexcept { delete static_cast<std::vector<float> *>(p); });
    return Image(data, {height, width, 3}, owner);
}

NB_MODULE(peer_nanobind, module) { module.def("Image", &image); }
