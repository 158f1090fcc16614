use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    #[dlpack(data)]
    Mono(Vec<f32>),
}

fn main() {}
