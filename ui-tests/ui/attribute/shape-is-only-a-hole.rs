use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = _)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
