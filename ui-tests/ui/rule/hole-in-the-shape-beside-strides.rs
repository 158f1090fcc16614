use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [_, 3], strides = [4, 1])]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
