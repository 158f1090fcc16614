use dlpack_core::Element;

type Size = u32;

#[derive(Element)]
#[repr(C)]
struct Trade {
    price: f64,
    size: Size,
}

fn main() {}
