// nanobind's own array object over memory of a C++ vector, its fastest way to be a DLPack producer; and functions that
// take arrays, as its documentation writes them.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

template <size_t N> using Image = nb::ndarray<nb::array_api, float, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// What keeps a vector for an array.
static nb::capsule owner(std::unique_ptr<std::vector<float>> pixels) {
    return nb::capsule(pixels.release(), [](void *p) noexcept { delete static_cast<std::vector<float> *>(p); });
}

template <size_t N> static Image<N> image(std::array<size_t, N> dims) {
    size_t count = 1;
    for (size_t extent : dims) count *= extent;
    auto pixels = std::make_unique<std::vector<float>>(count);
    for (size_t i = 0; i < count; i++) (*pixels)[i] = float(i);
    float *data = pixels->data();
    return Image<N>(data, N, dims.data(), owner(std::move(pixels)));
}

// So many numbers.
static Array give(size_t len) {
    auto pixels = std::make_unique<std::vector<float>>(len, 1.0f);
    float *data = pixels->data();
    return Array(data, {len}, owner(std::move(pixels)));
}

// Arrays of 16 by 16 numbers: of NumPy's, and such as any library reads.
static std::vector<Array> arrays(size_t count) {
    std::vector<Array> made;
    for (size_t i = 0; i < count; i++) made.push_back(give(256));
    return made;
}

static std::vector<Image<2>> frames(size_t count) {
    std::vector<Image<2>> made;
    for (size_t i = 0; i < count; i++) made.push_back(image<2>({16, 16}));
    return made;
}

template <size_t N> static size_t rank(nb::ndarray<const float, nb::ndim<N>, nb::device::cpu> array) {
    return array.ndim();
}

using Any = nb::ndarray<const float, nb::device::cpu>;

static size_t all_ranks(std::vector<Matrix<const float>> arrays) {
    size_t ranks = 0;
    for (const Matrix<const float> &array : arrays) ranks += array.ndim();
    return ranks;
}

// An array that is set is copied.
struct Settable {
    std::vector<float> pixels;
    explicit Settable(size_t len) : pixels(len) {}
    void set(nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu> array) {
        pixels.assign(array.data(), array.data() + array.size());
    }
};

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

// Iterates over frames, each of which is a new array.
struct Loader {
    size_t left;
    auto next() {
        if (left == 0) throw nb::stop_iteration();
        auto pixels = std::make_unique<std::vector<float>>(64 * 64, float(--left));
        float *data = pixels->data();
        return nb::ndarray<nb::numpy, float, nb::ndim<2>, nb::c_contig>(data, {64, 64}, owner(std::move(pixels)));
    }
};

// Environments whose observations and rewards are arrays over memory that each step changes.
struct Environments {
    std::vector<std::array<float, 4>> states;
    std::vector<double> pushes;
    explicit Environments(size_t count) : states(count), pushes(count) {}
    void step(nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> actions) {
        for (size_t i = 0; i < std::min(actions.size(), states.size()); i++) {
            float push = float(actions(i));
            auto [x, speed, angle, turn] = states[i];
            states[i] = {x + speed, speed + push, angle + turn, turn - push};
            pushes[i] = push;
        }
    }
};

// Columns and their names; each column is a new array.
static auto table(size_t columns, size_t rows) {
    using Column = nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig>;
    std::vector<std::pair<std::string, Column>> made;
    for (size_t i = 0; i < columns; i++) {
        auto *items = new std::vector<double>(rows, double(i));
        nb::capsule owner(items, [](void *p) noexcept { delete static_cast<std::vector<double> *>(p); });
        made.emplace_back("c" + std::to_string(i), Column(items->data(), {rows}, owner));
    }
    return made;
}

NB_MODULE(peer_nanobind, module) {
    nb::class_<Loader>(module, "Loader")
        .def("__init__", [](Loader *self, size_t frames) { new (self) Loader{frames}; })
        .def("__iter__", [](nb::handle self) { return self; })
        .def("__next__", &Loader::next);
    nb::class_<Environments>(module, "Environments")
        .def(nb::init<size_t>())
        .def("step", &Environments::step)
        .def_prop_ro("observations", [](Environments &self) {
            return nb::ndarray<nb::numpy, float, nb::ndim<2>, nb::c_contig>(self.states.data(), {self.states.size(), 4});
        }, nb::rv_policy::reference_internal)
        .def_prop_ro("rewards", [](Environments &self) {
            return nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig>(self.pushes.data(), {self.pushes.size()});
        }, nb::rv_policy::reference_internal);
    module.def("table", &table);
    module.def("Image1", &image<1>);
    module.def("Image2", &image<2>);
    module.def("Image3", &image<3>);
    module.def("Image4", &image<4>);
    module.def("give", &give);
    module.def("arrays", &arrays);
    module.def("frames", &frames);
    module.def("any_rank", [](Any array) { return array.ndim(); });
    module.def("ranks", &all_ranks);
    nb::class_<Settable>(module, "Settable")
        .def(nb::init<size_t>())
        .def_prop_rw("pixels", [](const Settable &self) { return self.pixels.size(); }, &Settable::set);
    module.def("rank_1", &rank<1>);
    module.def("rank_2", &rank<2>);
    module.def("rank_3", &rank<3>);
    module.def("rank_4", &rank<4>);
    module.def("sum", &sum);
    module.def("largest", &largest);
    module.def("copy_u8", &copied<uint8_t>);
    module.def("copy_f32", &copied<float>);
    module.def("copy_f64", &copied<double>);
}
