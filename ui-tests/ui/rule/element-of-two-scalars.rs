use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

fn main() {}
