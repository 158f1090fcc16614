use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data)]
struct Image {
    pixels: Vec<f32>,
    name: String,
}

fn main() {}
