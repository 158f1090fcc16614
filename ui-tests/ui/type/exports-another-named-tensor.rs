use dlpack_core::{DLPack, Record, assert_exports};

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
}

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor)]
    observations: Vec<[f32; 4]>,
    #[dlpack(columns)]
    trades: Vec<Trade>,
}
assert_exports!(Batch, "observations": f32, rank 2, writable);
assert_exports!(Batch, "price": f32);
assert_exports!(Batch, "rewards": f64);

fn main() {}
