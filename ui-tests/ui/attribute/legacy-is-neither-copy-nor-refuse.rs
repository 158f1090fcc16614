use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(legacy = "never")]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
