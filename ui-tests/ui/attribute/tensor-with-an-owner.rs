use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(owner))]
    obs: std::sync::Arc<[f32]>,
}

fn main() {}
