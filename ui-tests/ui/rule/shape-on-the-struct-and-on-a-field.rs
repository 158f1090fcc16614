use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [2, 3])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
