use std::collections::HashMap;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: HashMap<usize, f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
