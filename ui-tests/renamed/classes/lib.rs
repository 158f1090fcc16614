//! A class that knows `dlpack-pyo3` by another name only; checked, since an executable would need libpython.
#![forbid(unsafe_code)]
#![deny(warnings)]

use pyo3::prelude::*;
use renamed_pyo3::{DLPack, dlpack_pymethods};

/// Says the name in both places.
#[pyclass(frozen)]
#[derive(DLPack)]
#[dlpack(crate = renamed_pyo3)]
pub struct Image(Vec<f32>);

#[dlpack_pymethods(info, crate = ::renamed_pyo3)]
#[pymethods]
impl Image {}

/// Has tensors and is none.
#[pyclass(frozen)]
#[derive(DLPack)]
#[dlpack(crate = renamed_pyo3)]
pub struct Batch {
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods(crate = renamed_pyo3)]
#[pymethods]
impl Batch {}
