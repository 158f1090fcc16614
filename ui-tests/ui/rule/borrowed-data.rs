use dlpack_core::DLPack;

#[derive(DLPack)]
struct View<'a> {
    pixels: &'a [f32],
}

fn main() {
    let pixels = vec![0.0; 3];
    View { pixels: &pixels }.describe().unwrap();
}
