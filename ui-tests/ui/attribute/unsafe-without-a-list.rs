use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
