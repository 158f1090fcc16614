//! The first GPU of this machine.
#![expect(unsafe_code, reason = "asks the driver for its version")]

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, DriverError, sys};
use pyo3::exceptions::{PyLookupError, PyRuntimeError};
use pyo3::prelude::*;

use crate::kernels::{Kernels, driver_is_here};

pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) kernels: Kernels,
}

/// The error as a Python exception.
pub(crate) fn failed(error: DriverError) -> PyErr {
    PyRuntimeError::new_err(format!("{error:?}"))
}

/// The reason why no GPU can be used.
enum Unusable {
    /// No driver, or no device.
    Missing(String),
    Failing(String),
}

/// The GPU, which is opened once. `LookupError` if there is none, `RuntimeError` if its driver fails.
pub(crate) fn gpu() -> PyResult<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, Unusable>> = OnceLock::new();
    GPU.get_or_init(open).as_ref().map_err(|why| match why {
        Unusable::Missing(why) => PyLookupError::new_err(why.clone()),
        Unusable::Failing(why) => PyRuntimeError::new_err(why.clone()),
    })
}

fn open() -> Result<Gpu, Unusable> {
    use sys::CUresult::{CUDA_ERROR_NO_DEVICE, CUDA_ERROR_STUB_LIBRARY};
    if !driver_is_here() {
        return Err(Unusable::Missing("there is no libcuda here".into()));
    }
    let unusable = |error: DriverError| match error.0 {
        CUDA_ERROR_NO_DEVICE | CUDA_ERROR_STUB_LIBRARY => Unusable::Missing(format!("{error:?}")),
        _ => Unusable::Failing(format!("{error:?}")),
    };
    let context = CudaContext::new(0).map_err(unusable)?;
    let kernels = Kernels::load(&context).map_err(unusable)?;
    Ok(Gpu { context, kernels })
}

/// The name of the GPU, its architecture, and the version of the driver. `LookupError` without one.
#[pyfunction]
pub(crate) fn describe() -> PyResult<(String, (i32, i32), i32)> {
    let gpu = gpu()?;
    let name = gpu.context.name().map_err(failed)?;
    let capability = gpu.context.compute_capability().map_err(failed)?;
    let mut version = 0;
    // SAFETY: `version` is writable.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    code.result().map_err(failed)?;
    Ok((name, capability, version))
}
