use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(dat)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

fn main() {}
