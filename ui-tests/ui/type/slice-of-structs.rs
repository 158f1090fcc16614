use dlpack_core::{DLPack, Element};

#[derive(Element)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

fn main() {
    let tensor = vec![Point { x: 0.0, y: 1.0 }].into_dlpack().unwrap();
    let points = tensor.view().as_slice::<Point>().unwrap();
    println!("{}", points[0].x + points[0].y);
}
