use dlpack_core::DLPack;

#[derive(DLPack)]
struct View<'frame> {
    #[dlpack(data)]
    pixels: &'frame [f32],
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
