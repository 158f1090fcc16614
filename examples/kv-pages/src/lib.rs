//! The cache of a language model: pages in one allocation, each of keys and then values, for tokens and channels.
#![forbid(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};
use dlpack_core::DLPack;
use half::bf16;

/// The keys of all pages are one tensor, and their values another, without a copy.
#[derive(DLPack)]
#[dlpack(
    tensor(name = "keys", data = &self.memory, shape = dims, strides = [2 * page, _, _]),
    tensor(name = "values", data = &self.memory, shape = dims, strides = [2 * page, _, _], offset = page)
)]
pub struct Pages {
    memory: CudaSlice<bf16>,
    /// Pages, tokens, channels.
    dims: [usize; 3],
    page: usize,
}

impl Pages {
    /// Empty pages; the memory is theirs in the order of the stream.
    pub fn new(stream: &Arc<CudaStream>, dims: [usize; 3]) -> Result<Self, DriverError> {
        let page = dims[1] * dims[2];
        let memory = stream.alloc_zeros(2 * dims[0] * page)?;
        Ok(Self { memory, dims, page })
    }
}
