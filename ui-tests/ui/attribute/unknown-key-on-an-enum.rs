use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(rename_all = "snake_case")]
enum Audio {
    Mono(Vec<f32>),
}

fn main() {}
