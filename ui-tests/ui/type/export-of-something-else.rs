use dlpack_core::DLPack;

struct Config {
    name: String,
}

fn main() {
    let config = Config { name: String::new() };
    config.into_dlpack().unwrap();
}
