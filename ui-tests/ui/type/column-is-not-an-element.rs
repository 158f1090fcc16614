use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    symbol: String,
}

fn main() {}
