use dlpack_pyo3::ViewMutDyn;
use dlpack_pyo3::view::{Contiguous, MayOverlap};
use pyo3::prelude::*;

#[pyfunction]
fn sort(mut samples: ViewMutDyn<i64, (Contiguous, MayOverlap)>) -> PyResult<()> {
    samples.as_mut_slice()?.sort();
    Ok(())
}

fn main() {}
