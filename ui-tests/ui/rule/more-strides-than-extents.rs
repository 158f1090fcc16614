use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [2, 3], strides = [6, 3, 1])]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
