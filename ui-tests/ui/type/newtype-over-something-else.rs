use dlpack_core::DLPack;

struct Config {
    name: String,
}

#[derive(DLPack)]
struct Image(Config);

fn main() {}
