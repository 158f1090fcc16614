use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(order = "F")]
struct Matrix {
    #[dlpack(data)]
    values: Vec<f64>,
    #[dlpack(shape)]
    dims: [usize; 2],
    #[dlpack(strides)]
    steps: [usize; 2],
}

fn main() {}
