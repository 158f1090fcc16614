use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor(name = "tail", data = &self.mask[1..], set))]
struct Batch {
    mask: Vec<u8>,
}

fn main() {}
