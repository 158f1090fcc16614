use dlpack_core::{DLPack, assert_exports};

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}
assert_exports!(Image: f32, rank 3, writable);

fn main() {}
