use std::rc::Rc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    pixels: Rc<Vec<f32>>,
}

fn main() {}
