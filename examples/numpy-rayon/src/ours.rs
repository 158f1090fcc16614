//! With this crate: arrays of every library, whatever their strides.

use dlpack_pyo3::{FromDLPack, Numpy, View, ViewMut};
use ndarray::Array2;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::work;

/// The rows of an array, each divided by its length, as a new array of NumPy's. Nothing is copied on the way out.
#[pyfunction]
pub(crate) fn unit_rows(py: Python<'_>, x: View<f32, 2>) -> PyResult<Numpy<Array2<f32>>> {
    // The view goes to any thread. Python may even write to its elements while they are copied.
    let rows = py.detach(|| Array2::from_dlpack(x.into_managed()?).map(work::unit_rows))?;
    Ok(Numpy(rows))
}

/// Multiplies an array in place.
#[pyfunction]
pub(crate) fn scale(py: Python<'_>, mut x: ViewMut<f32, 2>, factor: f32) {
    py.detach(|| {
        let rows = x.rows_mut().par_bridge();
        rows.for_each(|mut row| row.update(|element| element * factor));
    });
}
