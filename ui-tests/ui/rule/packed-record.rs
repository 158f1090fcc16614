use dlpack_core::Record;

#[derive(Record)]
#[repr(C, packed(1))]
struct Trade {
    price: f64,
    size: u8,
}

fn main() {}
