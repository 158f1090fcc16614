use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    #[dlpack(skipped)]
    Empty,
}

fn main() {}
