use dlpack_pyo3::View;
use dlpack_pyo3::view::Promise;

struct Alone;

unsafe impl Promise for Alone {}

fn longest(samples: View<f32, 1, Alone>) -> &'static [f32] {
    samples.as_slice().unwrap()
}

fn main() {}
