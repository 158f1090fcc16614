use dlpack_core::{DLPack, StreamHandle};

#[derive(DLPack)]
#[dlpack(unsafe(data = self.address as *const f32, len = self.len), stream = self.stream)]
struct Page {
    address: usize,
    len: usize,
    stream: StreamHandle,
}

fn main() {}
