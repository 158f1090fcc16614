use std::rc::Rc;

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::prelude::*;

#[pyclass(frozen)]
#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Rc<[f32]>,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {}

fn main() {}
