use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(crate = "dlpack_core")]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
