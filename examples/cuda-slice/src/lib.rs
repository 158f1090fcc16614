//! A picture in a GPU's memory. cudarc's slice knows its device and its stream, so there is nothing to say of them.
#![forbid(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};
use dlpack_core::DLPack;

/// Rows and columns of grey.
#[derive(DLPack)]
pub struct Image {
    #[dlpack(data)]
    pixels: CudaSlice<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

impl Image {
    /// Queues the work that makes the pixels, and waits for none of it.
    pub fn new(stream: &Arc<CudaStream>, dims: [usize; 2]) -> Result<Self, DriverError> {
        let pixels = stream.clone_htod(&vec![0.5; dims[0] * dims[1]])?;
        Ok(Self { pixels, dims })
    }
}
