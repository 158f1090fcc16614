//! [`Queued`] and similar classes: GPU memory by its address, with the stream on which it is written.
//!
//! The tests allocate the memory by a driver, and pass the function that frees it.
#![expect(
    unsafe_code,
    reason = "lends memory that a driver gave, and calls the driver to free it"
)]

use core::mem::transmute;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use core::time::Duration;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

use dlpack_pyo3::{
    Buffer, DLPack, Device, DeviceType, ExportRequest, Loan, StreamHandle, dlpack_pymethods,
};
use pyo3::prelude::*;

use crate::alive::Alive;
use crate::memory;

/// Memory of floats, which is freed in the order of its stream.
struct Memory {
    address: usize,
    items: usize,
    device: Device,
    stream: StreamHandle,
    /// The address of the driver's function that frees the memory; 0 if the test frees it.
    free: usize,
    _alive: Alive,
}

impl Memory {
    fn new(
        address: usize,
        items: usize,
        device: (i32, i32),
        stream: usize,
        context: usize,
        free: usize,
    ) -> Self {
        // SAFETY: the test passes a stream that outlives its tensors.
        let stream = unsafe { StreamHandle::from_raw(stream) };
        Self {
            address,
            items,
            device: Device::new(DeviceType(device.0), device.1),
            stream: if context == 0 {
                stream
            } else {
                // SAFETY: the test passes the context of that stream.
                unsafe { stream.in_context(context) }
            },
            free,
            _alive: Alive::new(),
        }
    }

    fn start(&self) -> *mut f32 {
        with_exposed_provenance_mut(self.address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        type Free = extern "C" fn(usize, usize) -> i32;

        if self.free == 0 {
            return;
        }
        let free: *const () = with_exposed_provenance(self.free);
        // SAFETY: the test passes a driver's function with these arguments.
        let free = unsafe { transmute::<*const (), Free>(free) };
        free(self.address, self.stream.as_raw());
    }
}

/// The layout of the items.
struct Layout {
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

impl Layout {
    fn new(items: usize, shape: Option<Vec<i64>>, strides: Option<Vec<i64>>, offset: i64) -> Self {
        let shape = shape.unwrap_or_else(|| vec![i64::try_from(items).unwrap_or(i64::MAX)]);
        let strides = strides.unwrap_or_else(|| memory::row_major(&shape));
        Self {
            shape,
            strides,
            offset,
        }
    }
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident { $($key:tt)* })*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, module = "dlpack_probe")]
        #[derive(DLPack)]
        #[dlpack(
            // SAFETY: the driver allocated that much memory, which is freed when `memory` is dropped.
            unsafe(data = self.memory.start(), len = self.memory.items),
            shape = &self.layout.shape[..],
            strides = &self.layout.strides[..],
            offset = self.layout.offset,
            device = self.memory.device,
            $($key)*
        )]
        pub(crate) struct $name {
            memory: Memory,
            layout: Layout,
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (address, items, device, stream=0, *, shape=None, strides=None, offset=0, context=0, free=0))]
            #[expect(clippy::too_many_arguments, reason = "keywords of a constructor for tests")]
            fn new(
                address: usize,
                items: usize,
                device: (i32, i32),
                stream: usize,
                shape: Option<Vec<i64>>,
                strides: Option<Vec<i64>>,
                offset: i64,
                context: usize,
                free: usize,
            ) -> Self {
                Self {
                    memory: Memory::new(address, items, device, stream, context, free),
                    layout: Layout::new(items, shape, strides, offset),
                }
            }
        }
    )*};
}

classes! {
    /// Written on a stream, and freed after its consumers.
    Queued { stream = self.memory.stream }
    /// Written on a stream, and freed without waiting.
    Hasty { stream = self.memory.stream, release = "immediate" }
    /// Written on a stream, and read-only.
    Sealed { stream = self.memory.stream, readonly }
    /// Without a stream.
    Unsaid {}
}

/// Shape and strides are in the object, and its memory is written on a stream.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct LentQueued {
    #[dlpack(data)]
    memory: Handle,
    #[dlpack(shape, strides)]
    layout: dlpack_pyo3::Layout<1>,
}

#[dlpack_pymethods]
#[pymethods]
impl LentQueued {
    #[new]
    fn new(address: usize, items: usize, device: (i32, i32), stream: usize) -> PyResult<Self> {
        let memory = Memory::new(address, items, device, stream, 0, 0);
        Ok(Self {
            memory: Handle(Arc::new(memory)),
            layout: dlpack_pyo3::Layout::row_major([items])?,
        })
    }
}

/// A class whose exports keep the memory, not the object.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Handed {
    #[dlpack(data, owner)]
    memory: Handle,
}

/// A handle that lends the memory and names its stream; its clones share the memory.
#[derive(Clone)]
struct Handle(Arc<Memory>);

impl Buffer for Handle {
    fn lend(&self) -> Loan<'_> {
        // SAFETY: the driver allocated that much memory, which is freed with the last handle. Only devices and, after them,
        // consumers access it.
        let loan = unsafe { Loan::from_raw_parts_mut(self.0.start(), self.0.items, self.0.device) };
        loan.with_stream(self.0.stream)
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Handed {
    #[new]
    #[pyo3(signature = (address, items, device, stream=0, *, free=0))]
    fn new(address: usize, items: usize, device: (i32, i32), stream: usize, free: usize) -> Self {
        Self {
            memory: Handle(Arc::new(Memory::new(
                address, items, device, stream, 0, free,
            ))),
        }
    }
}

/// Two tensors by name over one memory; the object itself is no tensor.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    tensor(
        name = "all",
        // SAFETY: the driver allocated that much memory, which is freed when `memory` is dropped.
        unsafe(data = self.memory.start(), len = self.memory.items),
        device = self.memory.device,
        stream = self.memory.stream
    ),
    tensor(
        name = "half",
        // SAFETY: the driver allocated that much memory, which is freed when `memory` is dropped.
        unsafe(data = self.memory.start(), len = self.memory.items / 2),
        device = self.memory.device,
        stream = self.memory.stream
    )
)]
pub(crate) struct Pair {
    memory: Memory,
}

#[dlpack_pymethods]
#[pymethods]
impl Pair {
    #[new]
    #[pyo3(signature = (address, items, device, stream=0, *, free=0))]
    fn new(address: usize, items: usize, device: (i32, i32), stream: usize, free: usize) -> Self {
        Self {
            memory: Memory::new(address, items, device, stream, 0, free),
        }
    }
}

/// A struct with a tensor in a field, which has its own export functions.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Wrapped {
    inner: Inner,
}

#[derive(DLPack)]
struct Inner {
    #[dlpack(data, owner)]
    memory: Handle,
}

#[dlpack_pymethods]
#[pymethods]
impl Wrapped {
    #[new]
    #[pyo3(signature = (address, items, device, stream=0, *, free=0))]
    fn new(address: usize, items: usize, device: (i32, i32), stream: usize, free: usize) -> Self {
        let memory = Memory::new(address, items, device, stream, 0, free);
        Self {
            inner: Inner {
                memory: Handle(Arc::new(memory)),
            },
        }
    }
}

/// Its own code releases the GIL and waits for the device, when it lends its memory and when it is dropped.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Patient {
    #[dlpack(data, owner)]
    memory: Waiting,
}

#[derive(Clone)]
struct Waiting(Handle);

impl Waiting {
    fn wait(&self) {
        let for_the_processor = ExportRequest {
            dl_device: Some(Device::CPU),
            ..ExportRequest::versioned()
        };
        let memory = self.0.clone();
        let wait = || Inner { memory }.into_dlpack_with(&for_the_processor);
        let tensor = Python::try_attach(|py| py.detach(wait));
        drop(tensor.expect("Python is there").expect("the device waits"));
    }
}

impl Buffer for Waiting {
    fn lend(&self) -> Loan<'_> {
        self.wait();
        self.0.lend()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.wait();
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Patient {
    #[new]
    #[pyo3(signature = (address, items, device, stream=0, *, free=0))]
    fn new(address: usize, items: usize, device: (i32, i32), stream: usize, free: usize) -> Self {
        let memory = Memory::new(address, items, device, stream, 0, free);
        Self {
            memory: Waiting(Handle(Arc::new(memory))),
        }
    }
}

/// The address of a C function that calls `collect`, for callers without Python.
#[pyfunction]
pub(crate) fn collector() -> usize {
    extern "C" fn collect(_: usize) {
        dlpack_pyo3::stream::collect();
    }

    let function: extern "C" fn(usize) = collect;
    function as usize
}

/// Calls `collect`, and waits until no other thread is dropping owners.
#[pyfunction]
pub(crate) fn collect_and_wait(py: Python<'_>) {
    use dlpack_pyo3::stream::{collect, retained};
    py.detach(|| {
        let end = Instant::now() + Duration::from_secs(60);
        while {
            collect();
            retained().in_progress > 0 && Instant::now() < end
        } {
            sleep(Duration::from_micros(200));
        }
    });
}

/// The number of events that core keeps for later exports. With `forget`, core no longer uses them.
#[pyfunction]
pub(crate) fn spare_events(forget: bool) -> usize {
    dlpack_pyo3::stream::spare_events(forget)
}

/// Starts or stops the collector's thread. The tests begin without it.
#[pyfunction]
pub(crate) fn collect_in_background(on: bool) {
    dlpack_pyo3::stream::collect_in_background(on);
}

/// Drops the owners that graphs keep. The test launches no graph afterwards.
#[pyfunction]
pub(crate) fn release_captured() {
    // SAFETY: the test launches no graph afterwards.
    unsafe { dlpack_pyo3::stream::release_captured() };
}
