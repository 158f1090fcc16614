use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shapes = [2, _])]
struct Image {
    pixels: Vec<f32>,
}

fn main() {
    Image { pixels: vec![] }.into_dlpack().unwrap();
}
