use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [i64; 3],
    #[dlpack(strides)]
    steps: [i64; 2],
}

fn main() {}
