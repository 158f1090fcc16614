#[derive(dlpack_core::DLPack)]
struct Image {
    pixels: Vec<f32>,
}

fn main() {
    Image { pixels: vec![] }.into_dlpack().unwrap();
}
