use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch(#[dlpack(tensor)] Vec<f32>, #[dlpack(tensor(name = "rewards"))] Vec<f64>);

fn main() {}
