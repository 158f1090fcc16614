use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor, set)]
    mask: Vec<u8>,
}

fn main() {}
