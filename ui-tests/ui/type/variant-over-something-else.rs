use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    Named(String),
}

fn main() {}
