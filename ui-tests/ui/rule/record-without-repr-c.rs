use dlpack_core::Record;

#[derive(Record)]
struct Trade {
    price: f64,
    size: u32,
}

fn main() {}
