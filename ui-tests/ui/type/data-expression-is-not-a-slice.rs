use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = self.pixels.len())]
struct Image {
    pixels: Vec<f32>,
}

fn main() {}
