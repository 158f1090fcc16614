use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(readonly)]
    pixels: Vec<f32>,
    mask: Vec<bool>,
}

fn main() {}
