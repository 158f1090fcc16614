use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Trade(f64);

fn main() {}
