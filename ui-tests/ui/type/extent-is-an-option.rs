use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [batch, 3])]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    batch: Option<usize>,
}

fn main() {}
