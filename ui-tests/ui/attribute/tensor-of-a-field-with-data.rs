use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(data = &self.obs[..3]))]
    obs: Vec<f32>,
}

fn main() {}
