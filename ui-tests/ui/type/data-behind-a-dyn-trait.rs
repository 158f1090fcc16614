use dlpack_core::DLPack;

#[derive(DLPack)]
struct Samples(Box<dyn AsRef<[f32]> + Send + Sync>);

fn main() {}
