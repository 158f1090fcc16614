#!/usr/bin/env python3
"""Bytes that one use of the library adds to an extension module: a class, a view, an array as a result.

    python3 benches/sizes.py
    python3 benches/sizes.py --only class view

Each row is a module of its own. All are built with the release profile that the guide recommends (thin LTO, one codegen
unit, stripped), and the size of a module without arrays is subtracted. The sizes are exact: one build is enough.
It fails if a row is 3 percent larger than the guide says; then make it smaller, or correct the guide and `EXPECTED`.
"""

import argparse
import platform
import sys
from pathlib import Path

import crates

PYO3 = 'pyo3 = { version = "0.30", features = ["extension-module"] }'
OURS = f'{crates.dependency("dlpack-pyo3")}'
NO_STREAMS = OURS.replace(" }", ", default-features = false }")
RUST_NUMPY = 'numpy = "0.30"'

PROFILE = '[profile.release]\nlto = "thin"\ncodegen-units = 1\nstrip = true\n'

MODULE = """
#[pyo3::pymodule]
mod sizes {{
    use pyo3::prelude::*;
    {body}
}}
"""

CLASS = """
    use dlpack_pyo3::{DLPack, dlpack_pymethods};

    #[pyclass(frozen)]
    #[derive(DLPack)]
    pub struct Image {
        #[dlpack(data)]
        pixels: Vec<f32>,
        #[dlpack(shape)]
        dims: [usize; 3],
    }

    #[dlpack_pymethods]
    #[pymethods]
    impl Image {
        #[new]
        fn new(height: usize, width: usize) -> Self {
            Self { pixels: vec![0.5; height * width * 3], dims: [height, width, 3] }
        }
    }
"""

PLAIN = """
    #[pyfunction]
    fn sum(values: Vec<f32>) -> f32 {
        values.iter().sum()
    }

    #[pyclass(frozen)]
    pub struct Image {
        pixels: Vec<f32>,
    }

    #[pymethods]
    impl Image {
        #[new]
        fn new(height: usize, width: usize) -> Self {
            Self { pixels: vec![0.5; height * width * 3] }
        }

        fn first(&self) -> f32 {
            self.pixels[0]
        }
    }
"""

VIEW = """
    use dlpack_pyo3::View;

    #[pyfunction]
    fn sum_of(array: View<f32, 2>) -> f32 {
        array.iter().sum()
    }
"""

RESULT = """
    use dlpack_pyo3::Numpy;

    #[pyfunction]
    fn ramp(len: usize) -> Numpy<Vec<f32>> {
        Numpy((0..len).map(|it| it as f32).collect())
    }
"""

TENSOR = """
    #[pymodule_export]
    use dlpack_pyo3::Tensor;
"""

PEER = """
    use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};

    #[pyfunction]
    fn sum_of(array: PyReadonlyArray2<f32>) -> f32 {
        array.as_array().iter().sum()
    }

    #[pyfunction]
    fn ramp(py: Python<'_>, len: usize) -> Bound<'_, PyArray1<f32>> {
        (0..len).map(|it| it as f32).collect::<Vec<_>>().into_pyarray(py)
    }
"""

# For each module: its description, its dependencies, its items.
MODULES = {
    "alone": ("PyO3 alone", [], PLAIN),
    "class": ("one class", [OURS], PLAIN.replace("Image", "Other") + CLASS),
    "class-without-streams": ("one class, without `streams`", [NO_STREAMS], PLAIN.replace("Image", "Other") + CLASS),
    "class-with-tensor": ("one class, and `Tensor` in the module", [OURS], PLAIN.replace("Image", "Other") + CLASS + TENSOR),
    "view": ("a function with a `View`", [OURS], PLAIN + VIEW),
    "view-without-streams": ("a function with a `View`, without `streams`", [NO_STREAMS], PLAIN + VIEW),
    "result": ("functions with a `View` and a `Numpy`", [OURS], PLAIN + VIEW + RESULT),
    "result-without-streams": ("functions with a `View` and a `Numpy`, without `streams`", [NO_STREAMS], PLAIN + VIEW + RESULT),
    "rust-numpy": ("functions with rust-numpy's arrays", [RUST_NUMPY], PLAIN + PEER),
}

# In units of 1,024 bytes, as in the table of guide/src/packaging.md, on x86-64 Linux.
EXPECTED = {
    "class": 458,
    "class-without-streams": 304,
    "class-with-tensor": 640,
    "view": 265,
    "view-without-streams": 225,
    "result": 299,
    "result-without-streams": 259,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--work", type=Path, default=crates.CACHE / "sizes")
    options = parser.parse_args()
    base, too_large = None, []
    for name in dict.fromkeys(["alone", *options.only]):
        words, dependencies, body = MODULES[name]
        size = build(options.work / name, name, dependencies, body)
        base = base or size
        print(f"{words:55} {size:9,} {size - base:9,}", flush=True)
        if name in EXPECTED and (size - base) / 1024 > 1.03 * EXPECTED[name]:
            too_large.append(f"{words}: {(size - base) / 1024:.0f} KB, expected {EXPECTED[name]} KB")
    if too_large and (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        sys.exit("sizes: " + "; ".join(too_large))


def build(work, name, dependencies, body):
    """The bytes of this module. Each is its own workspace, because cargo unites the features of a workspace."""
    lines = '\n'.join([PYO3, *dependencies])
    manifest = f'[lib]\ncrate-type = ["cdylib"]\n\n[dependencies]\n{lines}\n'
    crates.write(work, {name: (manifest, MODULE.format(body=body))})
    with (work / "Cargo.toml").open("a") as file:
        file.write(f"\n{PROFILE}")
    crates.cargo(work, ["build", "--release"], target="../target")
    library = f"measured_{name.replace('-', '_')}"
    found = [*(work / "../target/release").glob(f"lib{library}.so"), *(work / "../target/release").glob(f"lib{library}.dylib")]
    return found[0].stat().st_size


if __name__ == "__main__":
    main()
