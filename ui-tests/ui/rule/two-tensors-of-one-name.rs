use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    obs: Vec<f32>,
    #[dlpack(tensor(name = "obs"))]
    rewards: Vec<f64>,
}

fn main() {}
