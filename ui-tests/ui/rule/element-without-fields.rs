use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Nothing {}

fn main() {}
