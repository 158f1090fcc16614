use dlpack_core::FromDLPack;

struct Camera(String);

#[derive(FromDLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    camera: Camera,
}

fn main() {}
