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
struct Page {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(device)]
    device: Device,
    #[dlpack(stream)]
    stream: CudaStream,
}

fn main() {
    let page = Page {
        values: vec![0.0],
        device: Device::CPU,
        stream: CudaStream {
            handle: StreamHandle::DEFAULT,
        },
    };
    let described = page.describe().unwrap();
    drop(page.stream);
    assert_eq!(described.shape(), [1]);
}
