use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image<T: Copy + Send> {
    #[dlpack(data)]
    pixels: Vec<T>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
