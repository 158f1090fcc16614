use dlpack_core::DLPack;

#[derive(DLPack)]
struct Kernel {
    #[dlpack(data, owner)]
    weights: [f32; 9],
}

fn main() {}
