use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: String,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
