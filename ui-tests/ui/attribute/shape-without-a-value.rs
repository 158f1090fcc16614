use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
