use dlpack_core::{Device, FromDLPack, StreamHandle};

#[derive(FromDLPack)]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(device)]
    device: Device,
    #[dlpack(stream)]
    stream: StreamHandle,
}

fn main() {}
