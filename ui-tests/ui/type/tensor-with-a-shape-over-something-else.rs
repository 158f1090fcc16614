use dlpack_core::DLPack;

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(shape = [_, 4]))]
    obs: String,
}

fn main() {}
