use dlpack_core::DLPack;

struct Inner {
    pixels: Vec<f32>,
    dims: [usize; 2],
}

#[derive(DLPack)]
struct Image {
    inner: Inner,
}

fn main() {}
