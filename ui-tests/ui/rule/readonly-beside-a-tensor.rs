use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor, readonly)]
    obs: Vec<f32>,
}

fn main() {}
