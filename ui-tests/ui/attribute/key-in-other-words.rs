use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<u8>,
    #[dlpack(dims)]
    size: [usize; 2],
}

fn main() {}
