use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape, strides)]
    dims: [usize; 2],
}

fn main() {}
