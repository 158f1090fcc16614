use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(elem = f32, dtype = dlpack_core::DataType::F32)]
struct Samples {
    values: Vec<u8>,
}

fn main() {}
