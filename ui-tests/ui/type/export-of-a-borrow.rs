use dlpack_core::DLPack;

fn main() {
    let pixels = vec![0.0_f32; 4];
    let image: &[f32] = &pixels;
    image.into_dlpack().unwrap();
}
