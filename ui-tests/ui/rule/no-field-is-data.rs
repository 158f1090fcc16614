use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    pixels: Vec<f32>,
    dims: [usize; 3],
}

fn main() {}
