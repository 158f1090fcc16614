use dlpack_core::{DLPack, FromDLPack};

#[derive(DLPack, FromDLPack)]
#[dlpack(data = &self.pixels[1..])]
struct Image {
    pixels: Vec<f32>,
}

fn main() {}
