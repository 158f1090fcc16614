use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
struct Names {
    #[dlpack(data)]
    names: Vec<String>,
    #[dlpack(shape)]
    dims: [usize; 1],
}

fn main() {}
