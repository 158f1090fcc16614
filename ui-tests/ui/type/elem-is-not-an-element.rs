use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(elem = char)]
struct Text {
    #[dlpack(data)]
    bytes: Vec<u8>,
}

fn main() {}
