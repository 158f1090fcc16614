use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    Empty,
}

fn main() {}
