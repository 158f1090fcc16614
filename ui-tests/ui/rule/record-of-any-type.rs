use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Pair<T> {
    first: T,
    second: T,
}

fn main() {}
