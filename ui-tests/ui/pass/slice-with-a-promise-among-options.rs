use dlpack_pyo3::view::{Contiguous, MayOverlap, Promise, Promised};
use dlpack_pyo3::{View, ViewMut, ViewMutDyn};

struct Alone;

// SAFETY: the functions below are not called.
unsafe impl Promise for Alone {}

#[expect(dead_code)]
fn first(samples: View<f32, 1, (Contiguous, Alone)>) -> Option<f32> {
    samples.as_slice().ok()?.first().copied()
}

#[expect(dead_code)]
fn sort(mut samples: ViewMutDyn<i64, (Alone, Contiguous, MayOverlap)>) {
    samples.as_mut_slice().expect("contiguous").sort_unstable();
}

#[expect(dead_code)]
fn last<O: Promised>(samples: &ViewMut<f32, 1, O>) -> Option<f32>
where
    O: dlpack_pyo3::view::InPlace,
{
    samples.as_slice().ok()?.last().copied()
}

fn main() {}
