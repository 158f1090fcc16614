use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(unsafe)]
    pixels: Vec<f32>,
}

fn main() {}
