use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: &'static [usize],
}

fn main() {}
