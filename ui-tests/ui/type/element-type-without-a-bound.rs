use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image<T> {
    #[dlpack(data)]
    pixels: Vec<T>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
