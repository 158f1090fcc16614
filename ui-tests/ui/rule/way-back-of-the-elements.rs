//! The field with the elements is not a size, a stride or an offset.

use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
#[dlpack(shape = [_, pixels], offset = pixels)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
}

fn main() {}
