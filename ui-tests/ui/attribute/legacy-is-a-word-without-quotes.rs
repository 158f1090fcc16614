use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(legacy = refuse)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
