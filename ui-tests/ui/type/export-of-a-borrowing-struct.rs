use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
}

fn main() {
    let image = Image { pixels: vec![0.0] };
    (&image).to_dlpack().unwrap();
}
