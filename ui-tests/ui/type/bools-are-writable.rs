use dlpack_core::DLPack;

#[derive(DLPack)]
struct Cells {
    #[dlpack(data, writable)]
    alive: Vec<bool>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
