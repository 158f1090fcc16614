use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Trade {
    #[dlpack(skip)]
    price: f64,
}

fn main() {}
