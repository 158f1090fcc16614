//! An object of Rust as argument and result of a Dask task, on a cluster of real processes: what is copied on its way?
//!
//! ```text
//! cd examples/dask-task && maturin develop --release && python cluster.py
//! ```
#![forbid(unsafe_code)]

use dlpack_pyo3::{DLPack, FromDLPack, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

/// A wave. `pickle` passes its memory to the sender, and creates a wave over the memory that was received: with a
/// `SharedBuffer` nothing is copied on either side.
#[pyclass(frozen, module = "dask_task")]
#[derive(DLPack, FromDLPack)]
struct Wave {
    #[dlpack(data, owner)]
    samples: SharedBuffer<f64>,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Wave {
    /// So many samples of a sine, this many of them a turn.
    #[new]
    fn new(count: u32, turn: f64) -> PyResult<Self> {
        let angle = |index| f64::from(index) / turn * core::f64::consts::TAU;
        let samples: Vec<_> = (0..count).map(|index| angle(index).sin()).collect();
        let samples = SharedBuffer::copied_from(&samples)?;
        Ok(Self { samples })
    }

    /// Half as loud, as a new wave.
    fn halved(&self) -> PyResult<Self> {
        let mut samples = self.samples.to_vec();
        samples.iter_mut().for_each(|sample| *sample *= 0.5);
        let samples = SharedBuffer::copied_from(&samples)?;
        Ok(Self { samples })
    }
}

/// What `import dask_task` gets from Rust. Pickle finds `Wave` here.
#[pymodule(name = "dask_task", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::Wave;
    #[pymodule_export]
    use dlpack_pyo3::Tensor;
}
