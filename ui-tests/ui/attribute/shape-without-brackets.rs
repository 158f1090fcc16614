use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = h, w)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    h: usize,
    w: usize,
}

fn main() {}
