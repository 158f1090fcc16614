use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Trade {
    #[dlpack(data)]
    price: f64,
}

fn main() {}
