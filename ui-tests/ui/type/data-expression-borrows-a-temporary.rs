use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = &self.scaled()[..])]
struct Image {
    pixels: Vec<f32>,
}

impl Image {
    fn scaled(&self) -> Vec<f32> {
        self.pixels.iter().map(|pixel| pixel / 255.0).collect()
    }
}

fn main() {}
