use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(via = self.pixels.clone())]
    pixels: Vec<f32>,
}

fn main() {}
