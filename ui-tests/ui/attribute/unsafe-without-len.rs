use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.values.as_ptr()))]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
