use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(DLPack)]
struct Scan {
    #[dlpack(data)]
    image: Image,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
