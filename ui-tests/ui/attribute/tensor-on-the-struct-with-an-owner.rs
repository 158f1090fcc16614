use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor(name = "tail", data = &self.obs[1..], owner))]
struct Batch {
    obs: std::sync::Arc<[f32]>,
}

fn main() {}
