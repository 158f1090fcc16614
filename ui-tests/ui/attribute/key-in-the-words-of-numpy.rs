use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<u8>,
    #[dlpack(itemsize)]
    size: usize,
}

fn main() {}
