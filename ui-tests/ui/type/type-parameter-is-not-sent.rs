use std::rc::Rc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image<T> {
    #[dlpack(data)]
    pixels: Vec<f32>,
    tag: T,
}

fn main() {
    let image = Image { pixels: vec![0.0], tag: Rc::new(()) };
    image.into_dlpack().unwrap();
}
