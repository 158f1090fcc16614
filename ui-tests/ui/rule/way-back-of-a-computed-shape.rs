use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
#[dlpack(shape = [rows * 2, _])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    rows: usize,
}

fn main() {}
