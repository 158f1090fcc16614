use std::sync::Arc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(owner)]
    context: Arc<str>,
}

fn main() {}
