use dlpack_core::DLPack;

#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    trades: String,
}

fn main() {}
