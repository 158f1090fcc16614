use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    #[dlpack(skip)]
    Raw(#[dlpack(data)] Vec<u8>),
}

fn main() {}
