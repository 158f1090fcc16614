use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(layout = [2, 3])]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
