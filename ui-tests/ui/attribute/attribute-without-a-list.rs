use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack]
    pixels: Vec<f32>,
}

fn main() {}
