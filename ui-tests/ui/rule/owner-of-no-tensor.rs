use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor(name = "tail", data = &self.obs[1..]))]
struct Batch {
    #[dlpack(owner)]
    obs: std::sync::Arc<[f32]>,
}

fn main() {}
