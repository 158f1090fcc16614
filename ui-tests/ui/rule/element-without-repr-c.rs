use dlpack_core::Element;

#[derive(Element)]
struct Point {
    x: f32,
    y: f32,
}

fn main() {}
