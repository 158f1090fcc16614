use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data, elem = f32)]
    bytes: Vec<u8>,
    name: String,
}

fn main() {}
