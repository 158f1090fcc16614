use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(bound = "f32")]
struct Samples<T> {
    values: Vec<T>,
}

fn main() {}
