use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data, shape = [rows, 3])]
    pixels: Vec<f32>,
    rows: usize,
}

fn main() {}
