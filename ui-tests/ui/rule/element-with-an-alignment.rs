use dlpack_core::Element;

#[derive(Element)]
#[repr(C, align(16))]
struct Point {
    x: f32,
    y: f32,
    z: f32,
}

fn main() {}
