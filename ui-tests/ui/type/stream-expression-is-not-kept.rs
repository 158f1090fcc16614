use std::sync::Arc;

use dlpack_core::{DLPack, Device, ProducerStream, StreamHandle, StreamRef};

struct CudaStream {
    handle: StreamHandle,
}

impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        self.handle.into()
    }
}

#[derive(DLPack)]
#[dlpack(stream = self.new_stream())]
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(device)]
    device: Device,
}

impl Page {
    fn new_stream(&self) -> Arc<CudaStream> {
        Arc::new(CudaStream {
            handle: StreamHandle::DEFAULT,
        })
    }
}

fn main() {}
