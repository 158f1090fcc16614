use dlpack_core::DLPack;

struct Pixel {
    r: u8,
    g: u8,
    b: u8,
}

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<Pixel>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
