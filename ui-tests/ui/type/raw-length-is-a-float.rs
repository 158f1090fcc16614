use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.values.as_ptr(), len = self.len))]
struct Image {
    values: Vec<f32>,
    len: f32,
}

fn main() {}
