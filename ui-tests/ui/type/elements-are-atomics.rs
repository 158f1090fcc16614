use std::sync::atomic::AtomicU32;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<AtomicU32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
