use dlpack_core::DLPack;

struct Pixels(Vec<f32>);

impl std::ops::Deref for Pixels {
    type Target = Vec<f32>;
    fn deref(&self) -> &Vec<f32> {
        &self.0
    }
}

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Pixels,
    name: String,
}

fn main() {}
