use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
struct Image {
    #[dlpack(data)]
    pixels: &'static [f32],
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
