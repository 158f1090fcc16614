use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.values.as_ptr(), len = 3, shape = [3]))]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
