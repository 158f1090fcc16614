//! Rust that knows nothing of Python.

use ndarray::{Array2, ArrayViewMut1, Axis};
use rayon::prelude::*;

/// Divides each row by its length.
pub(crate) fn unit_rows(mut rows: Array2<f32>) -> Array2<f32> {
    let unit = |mut row: ArrayViewMut1<'_, f32>| row /= row.dot(&row).sqrt();
    rows.axis_iter_mut(Axis(0)).into_par_iter().for_each(unit);
    rows
}
