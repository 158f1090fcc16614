use std::cell::Cell;
use std::sync::Arc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    reads: Cell<usize>,
}

fn main() {
    let image = Image { pixels: vec![0.0], reads: Cell::new(0) };
    Arc::new(image).to_dlpack().unwrap();
}
