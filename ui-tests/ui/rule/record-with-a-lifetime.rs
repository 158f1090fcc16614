use dlpack_core::Record;

#[derive(Record)]
#[repr(C)]
struct Row<'a> {
    price: &'a f32,
}

fn main() {}
