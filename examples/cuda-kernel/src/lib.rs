//! torch, a kernel of ours, torch, without a wait and without a copy:
//!
//! ```python
//! x = torch.rand(1_000_000, device="cuda")
//! cuda_kernel.scale(x, 2.0)
//! x.sum()
//! ```
#![expect(unsafe_code, reason = "launches a kernel on the caller's stream")]

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaFunction, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use dlpack_pyo3::{Device, DeviceViewMutDyn, stream};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The first GPU, with the kernel loaded.
struct Gpu {
    context: Arc<CudaContext>,
    scale: CudaFunction,
}

impl Gpu {
    fn get() -> PyResult<&'static Self> {
        static GPU: OnceLock<Gpu> = OnceLock::new();
        if let Some(gpu) = GPU.get() {
            return Ok(gpu);
        }
        // Where there is no driver, cudarc panics.
        stream::available(Device::cuda(0))?;
        let gpu = Self::open().map_err(failed)?;
        Ok(GPU.get_or_init(|| gpu))
    }

    fn open() -> Result<Self, DriverError> {
        let context = CudaContext::new(0)?;
        let module = context.load_module(Ptx::from_src(include_str!("scale.ptx")))?;
        let scale = module.load_function("scale")?;
        Ok(Self { context, scale })
    }
}

fn failed(error: DriverError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Multiplies an array of torch or CuPy, in place.
#[pyfunction]
fn scale(mut x: DeviceViewMutDyn<'_, f32>, factor: f32) -> PyResult<()> {
    let gpu = Gpu::get()?;
    // SAFETY: the stream is used in this function only.
    let stream = unsafe { x.producer_stream(&gpu.context) }?;
    let count = x.len() as u64;
    let threads = u32::try_from(count).map_err(|_| PyValueError::new_err("too many elements"))?;
    if threads == 0 {
        return Ok(());
    }
    let mut elements = x.on(&stream)?;
    let mut launch = stream.launch_builder(&gpu.scale);
    launch.arg(&mut elements).arg(&count).arg(&factor);
    // SAFETY: these are the arguments of `scale`, which writes `count` elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(threads)) }.map_err(failed)?;
    Ok(())
}

#[pymodule]
mod cuda_kernel {
    #[pymodule_export]
    use super::scale;
}
