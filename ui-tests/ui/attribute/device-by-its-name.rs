use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(device = "cuda:0")]
struct Image {
    pixels: Vec<f32>,
}

fn main() {}
