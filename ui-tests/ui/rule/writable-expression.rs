use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = &self.values[1..], writable)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
