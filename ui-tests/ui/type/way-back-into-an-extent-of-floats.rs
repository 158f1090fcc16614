use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
#[dlpack(shape = [rows, 3])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    rows: f32,
}

fn main() {}
