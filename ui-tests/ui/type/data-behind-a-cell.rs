use std::cell::RefCell;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: RefCell<Vec<f32>>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
