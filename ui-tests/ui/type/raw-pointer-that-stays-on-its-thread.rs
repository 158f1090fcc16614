use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.data, len = self.len))]
struct Image {
    data: *const f32,
    len: usize,
}

fn main() {}
