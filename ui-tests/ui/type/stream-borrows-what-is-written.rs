use dlpack_core::{DLPack, Device, StreamHandle};

#[derive(DLPack)]
#[dlpack(stream = self.stream())]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(device)]
    device: Device,
    streams: [StreamHandle; 2],
}

impl Page {
    fn stream(&self) -> &StreamHandle {
        &self.streams[0]
    }
}

fn main() {}
