use dlpack_core::{FromDLPack, Layout};

#[derive(FromDLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<2>,
}

fn main() {}
