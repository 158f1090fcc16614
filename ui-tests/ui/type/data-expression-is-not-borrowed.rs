use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = self.pixels[1..])]
struct Image {
    pixels: Vec<f32>,
}

fn main() {}
