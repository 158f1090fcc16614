use dlpack_core::{DLPack, StreamHandle};

#[derive(DLPack)]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(stream)]
    stream: StreamHandle,
}

fn main() {}
