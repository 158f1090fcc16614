use dlpack_core::DLPack;

#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    prices: Vec<f64>,
}

fn main() {}
