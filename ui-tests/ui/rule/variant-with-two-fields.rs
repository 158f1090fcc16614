use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    Stereo { left: Vec<f32>, right: Vec<f32> },
}

fn main() {}
