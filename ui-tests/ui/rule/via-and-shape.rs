use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(via = self.values.clone(), shape = [2, 3])]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
