use dlpack_core::{DLPack, Device};

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(device)]
    device: Device,
    #[dlpack(stream)]
    stream: usize,
}

fn main() {}
