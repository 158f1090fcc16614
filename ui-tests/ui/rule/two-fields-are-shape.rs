use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    rows: usize,
    #[dlpack(shape)]
    cols: usize,
}

fn main() {}
