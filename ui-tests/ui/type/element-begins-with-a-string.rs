use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Point {
    name: String,
    x: f32,
}

fn main() {}
