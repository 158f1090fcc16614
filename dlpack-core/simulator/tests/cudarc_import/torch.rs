//! A library with a stream that reuses memory as soon as a tensor of it is released, as PyTorch does.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use dlpack_core::{DLPack, Device, ExportRequest, Managed, StreamHandle};

use crate::simulator::{Api, Driver};

pub(crate) const BYTES: usize = 16;

/// CUDA, with whatever context is current.
pub(crate) fn cuda() -> Driver {
    Driver { api: Api::Cuda }
}

/// Memory of the library.
pub(crate) struct Torch {
    address: usize,
    stream: usize,
    shape: Vec<i64>,
    free: Arc<AtomicBool>,
}

/// The owner of an export of that memory.
#[derive(DLPack)]
#[dlpack(
    // SAFETY: the bytes exist until the end of the test.
    unsafe(data = core::ptr::with_exposed_provenance_mut::<f32>(self.address), len = BYTES / 4),
    shape = &self.shape[..],
    device = self.device,
    stream = self.stream,
    release = "immediate"
)]
struct Storage {
    address: usize,
    stream: StreamHandle,
    shape: Vec<i64>,
    device: Device,
    free: Arc<AtomicBool>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        // The next user of the memory writes it, in the order of the stream.
        if self.device == Device::cuda(0) {
            cuda().write(self.stream.as_raw(), self.address, BYTES);
        }
        self.free.store(true, Ordering::Relaxed);
    }
}

impl Torch {
    /// Four floats that a kernel on the stream is writing. The primary context of device 0 is current.
    pub(crate) fn new(stream: usize) -> Self {
        Self::with_shape(stream, &[4])
    }

    pub(crate) fn with_shape(stream: usize, shape: &[i64]) -> Self {
        let address = cuda().alloc_async(BYTES, stream);
        cuda().write(stream, address, BYTES);
        Self {
            address,
            stream,
            shape: shape.to_vec(),
            free: Arc::default(),
        }
    }

    /// An import of the memory from another library, with an unknown stream.
    pub(crate) fn tensor(&self) -> Managed {
        self.tensor_on(Device::cuda(0))
    }

    pub(crate) fn tensor_on(&self, device: Device) -> Managed {
        // SAFETY: the stream lives until the end of the test.
        let stream = unsafe { StreamHandle::from_raw(self.stream) };
        let storage = Storage {
            address: self.address,
            stream,
            shape: self.shape.clone(),
            device,
            free: Arc::clone(&self.free),
        };
        let request = ExportRequest {
            stream: (device != Device::CPU).then_some(-1),
            ..ExportRequest::versioned()
        };
        let tensor = storage.into_dlpack_with(&request).unwrap().into_raw();
        // SAFETY: `into_raw` just returned the pointer, and this is its only use.
        unsafe { Managed::from_raw(tensor) }.unwrap()
    }

    /// Whether the memory was released.
    pub(crate) fn is_free(&self) -> bool {
        self.free.load(Ordering::Relaxed)
    }

    /// Frees the memory by the driver, after the tensor is gone.
    pub(crate) fn end(self) {
        assert_eq!(dlpack_core::stream::collect(), 0);
        assert!(self.is_free());
        crate::simulator::hand_over();
        cuda().free_async(self.address, self.stream).unwrap();
    }
}
