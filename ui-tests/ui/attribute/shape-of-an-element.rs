use dlpack_core::Element;

#[derive(Element)]
#[dlpack(shape = [3])]
#[repr(C)]
struct Point {
    x: f32,
}

fn main() {}
