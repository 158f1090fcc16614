use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(elem = "f32")]
struct Samples {
    values: Vec<u8>,
}

fn main() {}
