use dlpack_core::DLPack;
use ndarray_of_another_version::Array2;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Array2<f32>,
}

fn main() {}
