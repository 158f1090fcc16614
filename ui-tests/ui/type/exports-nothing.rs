use dlpack_core::assert_exports;

struct Config {
    name: String,
}
assert_exports!(Config: f32);

fn main() {}
