"""A module with n Python classes over a `Vec<f32>` and a `[usize; 2]`: alone, with our methods, and as peers write it.

The lines are as rustfmt would break them: `guide/tables.py` counts those of a module with one class.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PYO3 = 'pyo3 = { version = "0.30", default-features = false, features = ["macros", "extension-module"] }'
DLPARK = 'dlpark = { version = "=0.10.0", features = ["pyo3"] }'


def alone(n):
    return f"""
#[pyclass(frozen)]
pub struct Image{n} {{
    pub pixels: Vec<f32>,
    pub dims: [usize; 2],
}}

#[pymethods]
impl Image{n} {{
    #[new]
    fn new(height: usize, width: usize) -> Self {{
        Self {{
            pixels: vec![0.5; height * width],
            dims: [height, width],
        }}
    }}
}}
"""


def ours(n):
    return f"""
#[pyclass(frozen)]
#[derive(dlpack_pyo3::DLPack)]
pub struct Image{n} {{
    #[dlpack(data)]
    pub pixels: Vec<f32>,
    #[dlpack(shape)]
    pub dims: [usize; 2],
}}

#[dlpack_pyo3::dlpack_pymethods]
#[pymethods]
impl Image{n} {{
    #[new]
    fn new(height: usize, width: usize) -> Self {{
        Self {{
            pixels: vec![0.5; height * width],
            dims: [height, width],
        }}
    }}
}}
"""


def dlpark(n):
    """The class of dlpark's guide to Python, as in python/peers/dlpark."""
    return f"""
#[pyclass(frozen)]
pub struct Image{n}(std::sync::Arc<Inner{n}>);

pub struct Inner{n} {{
    pixels: Vec<f32>,
    shape: [i64; 2],
    strides: [i64; 2],
}}

impl Image{n} {{
    fn export<M: dlpark::ManagedTensorBase>(&self) -> PyResult<dlpark::Managed<M>> {{
        let Inner{n} {{
            pixels,
            shape,
            strides,
        }} = &*self.0;
        let mut tensor = dlpark::metadata::Fixed::new(*shape, *strides)
            .initialize_as::<M>(std::sync::Arc::clone(&self.0))
            .map_err(|error| pyo3::exceptions::PyBufferError::new_err(error.to_string()))?;
        tensor
            .set_data(pixels.as_ptr().cast_mut().cast())
            .set_dtype(DLDataType::F32)
            .set_device(DLDevice::CPU);
        Ok(unsafe {{ tensor.finish() }})
    }}
}}

impl DlpackExporter for Image{n} {{
    fn device(&self) -> DLDevice {{
        DLDevice::CPU
    }}

    fn flags(&self) -> dlpark::DlpackFlags {{
        dlpark::DlpackFlags::empty()
    }}

    fn prepare_export(&self, _: Python<'_>, _: &ExportRequest<'_>) -> PyResult<()> {{
        Ok(())
    }}

    fn export_legacy(&self, _: Python<'_>) -> PyResult<dlpark::Managed<DLManagedTensor>> {{
        self.export()
    }}

    fn export_versioned(
        &self,
        _: Python<'_>,
    ) -> PyResult<dlpark::Managed<DLManagedTensorVersioned>> {{
        self.export()
    }}
}}

unsafe impl DlpackExchangeProducer for Image{n} {{
    fn managed_tensor_no_sync(
        &self,
        _: Python<'_>,
    ) -> PyResult<dlpark::Managed<DLManagedTensorVersioned>> {{
        self.export()
    }}

    fn current_work_stream(_: Python<'_>, _: DLDevice) -> PyResult<*mut std::ffi::c_void> {{
        Ok(std::ptr::null_mut())
    }}
}}

#[pymethods]
impl Image{n} {{
    #[new]
    fn new(height: usize, width: usize) -> Self {{
        let (rows, columns) = (height as i64, width as i64);
        Self(std::sync::Arc::new(Inner{n} {{
            pixels: vec![0.5; height * width],
            shape: [rows, columns],
            strides: [columns, 1],
        }}))
    }}

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {{
        let request = ExportRequest::parse(stream, max_version, dl_device, copy)?;
        dlpark::python::export_dlpack(self, py, request)
    }}

    fn __dlpack_device__(&self) -> (u32, i32) {{
        (1, 0)
    }}
}}
"""


def of_trait(versioned, legacy, result, lifetime):
    """The class in the readmes of dlpack-rs and pyo3-dlpack, as in python/peers."""

    def kind(n):
        return f"""
#[pyclass(frozen)]
pub struct Image{n}(std::sync::Arc<Inner{n}>);

pub struct Inner{n} {{
    pixels: Vec<f32>,
    shape: [i64; 2],
}}

struct Export{n}(std::sync::Arc<Inner{n}>);

impl IntoDLPack for Export{n} {{
    fn tensor_info(&self) -> TensorInfo {{
        let data = self.0.pixels.as_ptr().cast_mut().cast();
        TensorInfo::contiguous(data, cpu_device(), dtype_f32(), self.0.shape.to_vec())
    }}
}}

#[pymethods]
impl Image{n} {{
    #[new]
    fn new(height: usize, width: usize) -> Self {{
        let shape = [height as i64, width as i64];
        Self(std::sync::Arc::new(Inner{n} {{
            pixels: vec![0.5; height * width],
            shape,
        }}))
    }}

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__{lifetime}(
        &self,
        py: Python<{"'py" if lifetime else "'_"}>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<{result}> {{
        let _ = (stream, dl_device, copy);
        let export = Export{n}(std::sync::Arc::clone(&self.0));
        if max_version.is_some_and(|(major, _)| major >= 1) {{
            export.{versioned}
        }} else {{
            export.{legacy}
        }}
    }}

    fn __dlpack_device__(&self) -> (i32, i32) {{
        (1, 0)
    }}
}}
"""

    return kind


def rust_numpy(n):
    """A class that keeps a NumPy array, and returns it from a getter."""
    return f"""
#[pyclass(frozen)]
pub struct Image{n} {{
    #[pyo3(get)]
    pixels: Py<numpy::PyArray2<f32>>,
}}

#[pymethods]
impl Image{n} {{
    #[new]
    fn new(py: Python<'_>, height: usize, width: usize) -> Self {{
        let pixels = numpy::ndarray::Array2::from_elem((height, width), 0.5).into_pyarray(py);
        Self {{
            pixels: pixels.unbind(),
        }}
    }}
}}
"""


DLPARK_NAMES = """
use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::python::{DlpackExchangeProducer, DlpackExporter, ExportRequest};
"""
KINDS = {
    "alone": ([PYO3], "", alone, ""),
    "ours": ([PYO3, f'dlpack-pyo3 = {{ path = "{(ROOT / "dlpack-pyo3").as_posix()}" }}'], "", ours, ""),
    "dlpark": ([PYO3, DLPARK], DLPARK_NAMES, dlpark, "\n    dlpark::python::install_exchange_api::<Image{n}>(module.py())?;"),
}


OLDER_PYO3 = PYO3.replace("0.30", "0.28")
# Each requires another version of PyO3, of which a workspace can have only one.
OTHERS = {
    "rust-numpy": ([PYO3, 'numpy = "0.30"'], "use numpy::IntoPyArray;", rust_numpy, ""),
}
OLDER = {
    "dlpack-rs": (
        [OLDER_PYO3, 'dlpack-rs = { version = "=0.3.4", features = ["pyo3"] }'],
        """
use dlpack_rs::{
    pyo3_glue::IntoDLPack,
    safe::{TensorInfo, cpu_device, dtype_f32},
};
""",
        of_trait(
            "into_capsule_versioned(py, 0)", "into_capsule(py)", "Bound<'py, pyo3::types::PyCapsule>", "<'py>"
        ),
        "",
    ),
    "pyo3-dlpack": (
        [OLDER_PYO3, 'pyo3-dlpack = "=0.3.0"'],
        "use pyo3_dlpack::{IntoDLPack, TensorInfo, cpu_device, dtype_f32};",
        of_trait("into_dlpack_readonly(py)", "into_dlpack(py)", "Py<PyAny>", ""),
        "",
    ),
}
ALL = KINDS | OTHERS | OLDER


def source(names, kind, install, classes):
    classes = range(classes)
    added = "".join(f"    module.add_class::<Image{n}>()?;{install.format(n=n)}\n" for n in classes)
    return (
        f"use pyo3::prelude::*;\n{names}{''.join(kind(n) for n in classes)}\n"
        f"#[pymodule]\nfn images(module: &Bound<'_, PyModule>) -> PyResult<()> {{\n{added}    Ok(())\n}}\n"
    )


def sources(classes, kinds=KINDS):
    return {
        name: (
            '[lib]\nname = "images_{}"\ncrate-type = ["cdylib"]\n\n[dependencies]\n{}'.format(
                name.replace("-", "_"), "\n".join(needs)
            ),
            source(names, kind, install, classes),
        )
        for name, (needs, names, kind, install) in kinds.items()
    }


def nanobind_source(classes):
    """A class of nanobind's documentation that exports its own array."""
    structs = "".join(
        f"""
struct Image{n} {{
    std::vector<float> pixels;
    std::array<size_t, 2> dims;
    Image{n}(size_t height, size_t width) : pixels(height * width, 0.5f), dims{{height, width}} {{}}
}};
"""
        for n in range(classes)
    )
    added = "".join(
        f"""
    nb::class_<Image{n}>(module, "Image{n}")
        .def(nb::init<size_t, size_t>())
        .def("__dlpack__", [](nb::pointer_and_handle<Image{n}> self, nb::kwargs kwargs) {{
            Array array(self.p->pixels.data(), 2, self.p->dims.data(), self.h);
            return nb::cast(array, nb::rv_policy::reference).attr("__dlpack__")(**kwargs);
        }})
        .def("__dlpack_device__", [](nb::handle) {{ return std::make_pair(1, 0); }});
"""
        for n in range(classes)
    )
    return f"""#include <array>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

namespace nb = nanobind;

using Array = nb::ndarray<nb::array_api, float, nb::ndim<2>, nb::c_contig>;
{structs}
NB_MODULE(images, module) {{{added}}}
"""
