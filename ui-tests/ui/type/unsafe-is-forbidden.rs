#![forbid(unsafe_code)]

use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.values.as_ptr(), len = self.values.len()))]
struct Image {
    values: Vec<f32>,
}

fn main() {}
