use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Quote {
    bid: f64,
    size: u32,
}

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    quote: Quote,
}

fn main() {}
