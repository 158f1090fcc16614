//! The first GPU of this machine.
#![expect(unsafe_code, reason = "asks the driver for its version")]

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, DriverError, sys};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::kernels::{Kernels, driver_is_here};

pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) kernels: Kernels,
}

/// What went wrong, for Python.
pub(crate) fn failed(error: DriverError) -> PyErr {
    PyRuntimeError::new_err(format!("{error:?}"))
}

/// The GPU, which is opened once.
pub(crate) fn gpu() -> PyResult<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, String>> = OnceLock::new();
    GPU.get_or_init(open)
        .as_ref()
        .map_err(|reason| PyRuntimeError::new_err(reason.clone()))
}

fn open() -> Result<Gpu, String> {
    if !driver_is_here() {
        return Err("there is no libcuda here".into());
    }
    let text = |error: DriverError| format!("{error:?}");
    let context = CudaContext::new(0).map_err(text)?;
    let kernels = Kernels::load(&context).map_err(text)?;
    Ok(Gpu { context, kernels })
}

/// The name of the GPU, its architecture, and the version of the driver. `RuntimeError` without one.
#[pyfunction]
pub(crate) fn describe() -> PyResult<(String, (i32, i32), i32)> {
    let gpu = gpu()?;
    let name = gpu.context.name().map_err(failed)?;
    let capability = gpu.context.compute_capability().map_err(failed)?;
    let mut version = 0;
    // SAFETY: a place for the result.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    code.result().map_err(failed)?;
    Ok((name, capability, version))
}
