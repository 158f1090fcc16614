use std::sync::Arc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(set))]
    mask: Arc<Vec<u8>>,
}

fn main() {}
