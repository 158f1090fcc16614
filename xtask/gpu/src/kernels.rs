//! Work for a device: real kernels, or accesses that the fake driver of the tests records.
#![expect(
    unsafe_code,
    reason = "starts kernels, and calls a library that is found by name"
)]

use core::ffi::c_int;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DevicePtrMut, DriverError, LaunchConfig, PushKernelArg,
    sys,
};
use cudarc::nvrtc::Ptx;
use libloading::Library;
use pyo3::prelude::*;

const SOURCE: &str = include_str!("kernels.ptx");
/// The variable with the path of the fake driver.
const VARIABLE: &str = "DLPACK_FAKE_LIBCUDA";

const ONE: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};
/// Enough threads to write memory at full speed.
const MANY: LaunchConfig = LaunchConfig {
    grid_dim: (256, 1, 1),
    block_dim: (256, 1, 1),
    shared_mem_bytes: 0,
};

/// The control interface of `dlpack-simulator`: its memory is host memory, and its kernels are recorded accesses.
pub(crate) struct Fake {
    kernel: extern "C" fn(c_int, usize, usize, usize, c_int) -> c_int,
    faults: extern "C" fn(*mut u8, usize) -> usize,
}

/// The fake driver, if it is used. It must be opened before cudarc looks for a driver, which then finds it by name.
fn fake() -> Option<&'static Fake> {
    static FAKE: OnceLock<Option<Fake>> = OnceLock::new();
    FAKE.get_or_init(|| {
        let path = std::env::var_os(VARIABLE)?;
        // SAFETY: the environment names the simulator, whose initialisers have no requirements.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: this is the signature of the simulator's function.
        let kernel = *unsafe { library.get(b"sim_kernel") }.ok()?;
        // SAFETY: this is the signature of the simulator's function.
        let faults = *unsafe { library.get(b"sim_faults") }.ok()?;
        core::mem::forget(library);
        Some(Fake { kernel, faults })
    })
    .as_ref()
}

/// The number of unordered accesses that the fake driver has seen; `None` on a real driver.
#[pyfunction]
pub(crate) fn faults() -> Option<usize> {
    fake().map(|fake| (fake.faults)(core::ptr::null_mut(), 0))
}

/// Whether cudarc finds a driver; it panics without one.
pub(crate) fn driver_is_here() -> bool {
    fake();
    // SAFETY: this loads the library, as any use of cudarc does.
    unsafe { sys::is_culib_present() }
}

/// The kernels for a stream.
pub(crate) enum Kernels {
    Real {
        spin: CudaFunction,
        fill: CudaFunction,
    },
    Fake(&'static Fake),
}

impl Kernels {
    pub(crate) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        if let Some(fake) = fake() {
            return Ok(Self::Fake(fake));
        }
        let module = context.load_module(Ptx::from_src(SOURCE))?;
        let kernels = Self::Real {
            spin: module.load_function("spin")?,
            fill: module.load_function("fill")?,
        };
        // The first use of a kernel loads it, which waits for all others.
        let stream = context.default_stream();
        let mut scratch = stream.alloc_zeros::<f32>(1)?;
        kernels.spin(&stream, 0)?;
        kernels.fill(&stream, &mut scratch, 0.0)?;
        stream.synchronize()?;
        Ok(kernels)
    }

    /// Keeps a stream busy for this time. The fake driver has no clock.
    pub(crate) fn spin(&self, stream: &CudaStream, nanoseconds: u64) -> Result<(), DriverError> {
        let Self::Real { spin, .. } = self else {
            return Ok(());
        };
        let mut launch = stream.launch_builder(spin);
        // SAFETY: these are the arguments of `spin`, which accesses no memory.
        unsafe { launch.arg(&nanoseconds).launch(ONE) }.map(drop)
    }

    /// Queues a kernel that writes `value` to all elements of `data`.
    pub(crate) fn fill(
        &self,
        stream: &CudaStream,
        data: &mut impl DevicePtrMut<f32>,
        value: f32,
    ) -> Result<(), DriverError> {
        let len = data.len();
        // Its drop, after the kernel is queued, makes cudarc record the write.
        let (address, _written) = data.device_ptr_mut(stream);
        match self {
            Self::Real { fill, .. } => {
                let count = len as u64;
                let mut launch = stream.launch_builder(fill);
                launch.arg(&address).arg(&count).arg(&value);
                // SAFETY: these are the arguments of `fill`, and `data` has that many elements.
                unsafe { launch.launch(MANY) }.map(drop)
            }
            Self::Fake(fake) => {
                let address = usize::try_from(address).expect("the fake driver gave it as one");
                let start = core::ptr::with_exposed_provenance_mut::<f32>(address);
                let number = stream.cu_stream().addr();
                let bytes = len * size_of::<f32>();
                (fake.kernel)(0, number, address, bytes, 1);
                // SAFETY: memory of the fake driver is host memory; `data` has that many elements and is borrowed exclusively.
                unsafe { core::slice::from_raw_parts_mut(start, len) }.fill(value);
                Ok(())
            }
        }
    }
}
