use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(tensor(name = "first", shape = [3]))]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
