use std::sync::{Arc, RwLock};

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Arc<RwLock<Vec<f32>>>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
