use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor(data = &self.values[..3]))]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
