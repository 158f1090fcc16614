use dlpack_core::{
    Buffer, DLPack, Descriptor, Device, Error, Parts, ProducerStream, StreamHandle, StreamRef,
};

struct CudaStream {
    handle: StreamHandle,
}

impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        self.handle.into()
    }
}

struct Page {
    values: Vec<f32>,
}

impl DLPack for Page {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let stream = CudaStream {
            handle: StreamHandle::DEFAULT,
        };
        Parts::new()
            .device(Device::CPU)
            .stream(stream.producer_stream())
            .describe(self.values.lend())
    }
}

fn main() {}
