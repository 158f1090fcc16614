use dlpack_core::{DLPack, Record};

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
    #[dlpack(tensor)]
    price: Vec<f32>,
}

fn main() {}
