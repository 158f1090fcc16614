use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [rows, cols])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    rows: usize,
    cols: f32,
}

fn main() {}
