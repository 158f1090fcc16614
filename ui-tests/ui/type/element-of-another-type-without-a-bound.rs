use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Point<T> {
    x: T,
    y: T,
}

fn main() {}
