use std::sync::Arc;

use dlpack_core::{Buffer, DLPack, Device, Loan, ProducerStream, StreamHandle, StreamRef};

struct CudaStream {
    handle: StreamHandle,
}

impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        self.handle.into()
    }
}

struct Memory {
    items: Vec<f32>,
}

impl Buffer for Memory {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.items[..])
    }
}

#[derive(DLPack)]
struct Page {
    #[dlpack(data, owner)]
    memory: Arc<Memory>,
    #[dlpack(device)]
    device: Device,
    #[dlpack(stream)]
    stream: CudaStream,
}

fn main() {}
