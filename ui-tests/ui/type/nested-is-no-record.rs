use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    #[dlpack(nested)]
    quote: [f64; 2],
}

fn main() {}
