use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    #[dlpack(skip)]
    Mono(Vec<f32>),
    #[dlpack(skip)]
    Empty,
}

fn main() {}
