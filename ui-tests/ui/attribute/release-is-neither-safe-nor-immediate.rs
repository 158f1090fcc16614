use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(release = "lazy")]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
