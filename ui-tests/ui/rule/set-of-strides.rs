use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(set, shape = [2], strides = [3]))]
    mask: Vec<u8>,
}

fn main() {}
