use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {}

fn main() {}
