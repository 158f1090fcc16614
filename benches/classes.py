#!/usr/bin/env python3
"""What 100 Python classes cost, alone, with our methods and with dlpark's: the compiler's time and the library's size.

    python3 benches/classes.py
    python3 benches/classes.py --classes 20 --rounds 1 --commands check

Writes three crates of frozen classes over a `Vec<f32>` and a `[usize; 2]`: the floor is the classes alone, with
PyO3's `#[new]`. crates.py says how they are measured, with cargo's default profiles. The size is that of the
library of `cargo build --release` after `strip`.
"""

import argparse
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import crates
from crates import measure, ratio

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
        Self {{ pixels: vec![0.5; height * width], dims: [height, width] }}
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
        Self {{ pixels: vec![0.5; height * width], dims: [height, width] }}
    }}
}}
"""


def dlpark(n):
    """As its guide to Python shows it, and python/peers/dlpark has it."""
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
        let Inner{n} {{ pixels, shape, strides }} = &*self.0;
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

    fn export_versioned(&self, _: Python<'_>) -> PyResult<dlpark::Managed<DLManagedTensorVersioned>> {{
        self.export()
    }}
}}

unsafe impl DlpackExchangeProducer for Image{n} {{
    fn managed_tensor_no_sync(&self, _: Python<'_>) -> PyResult<dlpark::Managed<DLManagedTensorVersioned>> {{
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


DLPARK_NAMES = """
use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::python::{DlpackExchangeProducer, DlpackExporter, ExportRequest};
"""
KINDS = {
    "alone": ([PYO3], "", alone, ""),
    "ours": ([PYO3, crates.dependency("dlpack-pyo3")], "", ours, ""),
    "dlpark": ([PYO3, DLPARK], DLPARK_NAMES, dlpark, "dlpark::python::install_exchange_api::<Image{n}>(module.py())?;"),
}


def source(names, kind, install, classes):
    classes = range(classes)
    added = "".join(f"    module.add_class::<Image{n}>()?;{install.format(n=n)}\n" for n in classes)
    return (
        f"use pyo3::prelude::*;\n{names}{''.join(kind(n) for n in classes)}\n"
        f"#[pymodule]\nfn images(module: &Bound<'_, PyModule>) -> PyResult<()> {{\n{added}    Ok(())\n}}\n"
    )


def sources(classes):
    return {
        name: (
            '[lib]\nname = "images_{}"\ncrate-type = ["cdylib"]\n\n[dependencies]\n{}'.format(name, "\n".join(needs)),
            source(names, kind, install, classes),
        )
        for name, (needs, names, kind, install) in KINDS.items()
    }


def size(work, name):
    """Bytes of the library that the last `cargo build --release` made, without what only a debugger reads."""
    folder = work / "target" / "release"
    library = next(path for path in folder.glob(f"libimages_{name}.*") if path.suffix in (".so", ".dylib"))
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(library, place)
        subprocess.run(["strip", copy], check=True)
        return Path(copy).stat().st_size


# As many as show what is there once, beside the many that show what a class costs.
FEW = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", nargs="+", choices=crates.COMMANDS, default=list(crates.COMMANDS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--work", type=Path, default=crates.CACHE / "classes")
    options = parser.parse_args()

    crates.write(options.work, sources(options.classes))
    print(f"the crates are in {options.work}")
    print(f"{options.classes} classes, {options.rounds} rounds, median seconds of processor and on the clock")
    print(f"{'command':8} {'classes':8} {'processor':>9} {'clock':>7} {'to alone':>9}")
    for command in options.commands:
        processor, clock = measure(options.work, options.kinds, command, options.rounds)
        for kind, times in processor.items():
            to_alone = f"{ratio(times, processor['alone']):9.2f}" if "alone" in processor else ""
            print(f"{command:8} {kind:8} {statistics.median(times):9.2f} {clock[kind]:7.2f} {to_alone}", flush=True)
    if "release" in options.commands:
        sizes = {kind: size(options.work, kind) for kind in options.kinds}
        few = options.work / "few"
        crates.write(few, sources(FEW))
        for kind in options.kinds:
            crates.rebuild(few, kind, "release")
        small = {kind: size(few, kind) for kind in options.kinds}
        print("stripped library, bytes: in all, a class, and once for any number of classes; then what of these alone has not")
        costs = {kind: cost(small[kind], sizes[kind], options.classes) for kind in options.kinds}
        for kind, (each, once) in costs.items():
            more = [f"{mine - plain:9.0f}" for mine, plain in zip((each, once), costs["alone"])] if "alone" in costs else []
            print(f"{'size':8} {kind:8} {sizes[kind]:9} {each:9.0f} {once:9.0f} {' '.join(more)}")


def cost(small, large, classes):
    """Bytes of one class more, and of a library without any, from those of `FEW` and of all classes."""
    each = (large - small) / (classes - FEW)
    return each, small - FEW * each


if __name__ == "__main__":
    main()
