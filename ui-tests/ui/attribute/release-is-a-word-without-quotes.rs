use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(release = immediate)]
struct Samples {
    values: Vec<f32>,
}

fn main() {}
