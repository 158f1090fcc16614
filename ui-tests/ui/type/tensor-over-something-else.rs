use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    obs: Vec<f32>,
    #[dlpack(tensor)]
    names: Vec<String>,
}

fn main() {}
