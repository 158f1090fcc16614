//! The class that the README shows; `cargo xtask guide` compares the two.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
#[dlpack(shape = [height, width, 3])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<u8>,
    height: usize,
    width: usize,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {
    #[new]
    fn new() -> Self {
        let row = |y| (0..=255).flat_map(move |x| [x, y, x ^ y]);
        Self {
            pixels: (0..=255).flat_map(row).collect(),
            height: 256,
            width: 256,
        }
    }
}

#[pymodule]
mod quickstart {
    #[pymodule_export]
    use super::Image;
}
