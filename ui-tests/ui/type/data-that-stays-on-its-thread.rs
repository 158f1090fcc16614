use std::rc::Rc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Rc<[f32]>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
