use std::rc::Rc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    name: Rc<str>,
}

fn main() {}
