use std::sync::Arc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data, writable)]
    pixels: Arc<[f32]>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
