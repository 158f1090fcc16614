use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [2, 3], strides = [3, 1], byte_strides = [12, 4])]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
