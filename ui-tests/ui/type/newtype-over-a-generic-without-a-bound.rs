use dlpack_core::DLPack;

#[derive(DLPack)]
struct Wrapper<T>(T);

fn main() {}
