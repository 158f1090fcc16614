use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
