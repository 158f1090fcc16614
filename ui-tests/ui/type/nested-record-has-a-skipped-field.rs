use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Quote {
    bid: f64,
    #[dlpack(skip)]
    name: String,
}

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    #[dlpack(nested)]
    quote: Quote,
}

fn main() {}
