use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(offset = 1, byte_offset = 4)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
