use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(name = "first observation"))]
    obs: Vec<f32>,
}

fn main() {}
