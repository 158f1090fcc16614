use dlpack_core::FromDLPack;

#[derive(FromDLPack)]
struct Name(String);

fn main() {}
