//! Memory of an AMD GPU behind a raw pointer. The key `unsafe` is the promise that the pointer is what it says.
#![expect(unsafe_code, reason = "vouches for a pointer")]

pub mod hip;

use std::sync::Arc;

use dlpack_core::{DLPack, Device};

use crate::hip::{DeviceBuffer, Stream};

/// Values on a grid.
#[derive(DLPack)]
#[dlpack(
    // SAFETY: the buffer has so many elements, and frees them when it is dropped, behind all work on its stream.
    unsafe(data = self.values.as_ptr(), len = self.values.len())
)]
pub struct Field {
    /// What a binding to HIP gives out.
    pub values: DeviceBuffer,
    /// Rows and columns.
    #[dlpack(shape)]
    pub dims: [usize; 2],
    /// The GPU that they lie on.
    #[dlpack(device)]
    pub device: Device,
    /// The stream that they are written on.
    #[dlpack(stream)]
    pub stream: Arc<Stream>,
}
