use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    tensor: Vec<f32>,
}

fn main() {}
