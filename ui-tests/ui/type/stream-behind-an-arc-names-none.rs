use std::sync::Arc;

use dlpack_core::{DLPack, Device};

struct HipStream;

#[derive(DLPack)]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(device)]
    device: Device,
    #[dlpack(stream)]
    stream: Arc<HipStream>,
}

fn main() {}
