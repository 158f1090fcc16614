use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor = "observations")]
    obs: Vec<f32>,
}

fn main() {}
