use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Point {
    x: f32,
    name: String,
}

fn main() {}
