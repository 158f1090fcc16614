use dlpack_core::DLPack;

#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
}

fn main() {}
