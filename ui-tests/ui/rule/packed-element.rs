use dlpack_core::Element;

#[derive(Element)]
#[repr(C, packed(1))]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
