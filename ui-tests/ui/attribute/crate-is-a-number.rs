use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(crate = 3)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
