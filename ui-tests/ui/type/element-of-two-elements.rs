use dlpack_core::Element;

#[derive(Element)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(Element)]
#[repr(C)]
struct Money {
    cents: i64,
}

#[derive(Element)]
#[repr(C)]
struct Shop {
    at: Point,
    price: Money,
}

fn main() {}
