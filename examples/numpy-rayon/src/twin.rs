//! The same with rust-numpy: arrays of NumPy.

/// `numpy_rayon.twin` in Python.
#[pyo3::pymodule]
pub(crate) mod twin {
    use ndarray::Array2;
    use numpy::{PyArray2, PyReadonlyArray2, PyReadwriteArray2};
    use pyo3::prelude::*;

    use crate::work;

    /// The rows of an array, each divided by its length, as a new array.
    #[pyfunction]
    fn unit_rows<'py>(py: Python<'py>, x: PyReadonlyArray2<'py, f32>) -> Bound<'py, PyArray2<f32>> {
        // Other threads of Python must not write to `x` while this runs. Nothing prevents that.
        let view = x.as_array();
        let rows: Array2<f32> = py.detach(|| work::unit_rows(view.to_owned()));
        PyArray2::from_owned_array(py, rows)
    }

    /// Multiplies an array in place.
    #[pyfunction]
    fn scale(py: Python<'_>, mut x: PyReadwriteArray2<'_, f32>, factor: f32) {
        let mut view = x.as_array_mut();
        py.detach(|| view.par_mapv_inplace(|element| element * factor));
    }
}
