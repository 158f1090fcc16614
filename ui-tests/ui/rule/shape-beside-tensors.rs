use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [_, 4])]
struct Batch {
    #[dlpack(tensor)]
    obs: Vec<f32>,
    #[dlpack(tensor)]
    rewards: Vec<f64>,
}

fn main() {}
