use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(via = self.pixels.clone())]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
}

fn main() {}
