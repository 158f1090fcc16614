use dlpack_core::{DLPack, FromDLPack};

#[derive(DLPack, FromDLPack)]
struct Batch {
    #[dlpack(tensor)]
    obs: Vec<f32>,
}

fn main() {}
