use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = "2, 3")]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
