use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = pixels)]
struct Image {
    pixels: Vec<f32>,
    name: String,
}

fn main() {}
