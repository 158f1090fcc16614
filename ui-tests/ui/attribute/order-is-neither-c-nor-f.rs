use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(order = "K")]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
