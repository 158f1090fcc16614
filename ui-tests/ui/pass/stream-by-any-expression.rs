//! A stream by a handle, by a reference to what keeps it, or by a field: each lives as long as the struct.

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

struct Context {
    stream: Arc<CudaStream>,
}

impl Context {
    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    fn named(&self) -> StreamRef<'_> {
        self.stream.producer_stream()
    }
}

#[derive(DLPack)]
#[dlpack(stream = self.context.stream(), device = Device::CPU)]
struct ByReference {
    #[dlpack(data)]
    values: Vec<f32>,
    context: Context,
}

#[derive(DLPack)]
#[dlpack(stream = context.stream, device = Device::CPU)]
struct ByField {
    #[dlpack(data)]
    values: Vec<f32>,
    context: Context,
}

#[derive(DLPack)]
#[dlpack(stream = self.context.named(), device = Device::CPU)]
struct ByName {
    #[dlpack(data)]
    values: Vec<f32>,
    context: Context,
}

#[derive(DLPack)]
#[dlpack(stream = StreamHandle::DEFAULT, device = Device::CPU)]
struct ByHandle {
    #[dlpack(data)]
    values: Vec<f32>,
}

fn handle(tensor: &impl DLPack) -> Option<usize> {
    Some(tensor.describe().ok()?.stream()?.as_raw())
}

fn main() {
    let context = || Context {
        stream: Arc::new(CudaStream {
            handle: StreamHandle::DEFAULT,
        }),
    };
    let values = || vec![0.0];
    let by_reference = ByReference { values: values(), context: context() };
    let by_field = ByField { values: values(), context: context() };
    let by_name = ByName { values: values(), context: context() };
    assert_eq!(handle(&by_reference), Some(0));
    assert_eq!(handle(&by_field), Some(0));
    assert_eq!(handle(&by_name), Some(0));
    assert_eq!(handle(&ByHandle { values: values() }), Some(0));
}
