use dlpack_core::DLPack;

#[derive(DLPack)]
struct Marker;

fn main() {}
