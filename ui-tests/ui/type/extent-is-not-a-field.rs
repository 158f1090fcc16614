use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [rows, colums])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    rows: usize,
    columns: usize,
}

fn main() {}
