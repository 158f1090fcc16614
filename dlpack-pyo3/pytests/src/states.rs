//! Functions over arguments, for arrays in states that DLPack cannot describe.

/// As in a user's module.
#[pyo3::pymodule]
pub(crate) mod states {
    use dlpack_pyo3::view::Convert;
    use dlpack_pyo3::{FromDLPack, Imported, View, ViewDyn, ViewMutDyn};
    use num_complex::Complex32;
    use pyo3::prelude::*;

    #[pyfunction]
    fn real(array: ViewDyn<f32>) -> PyResult<Vec<f32>> {
        Ok(array.to_vec()?)
    }

    #[pyfunction]
    fn complex(array: View<Complex32, 2>) -> PyResult<Vec<(f32, f32)>> {
        let items = array.to_vec()?;
        Ok(items.iter().map(|item| (item.re, item.im)).collect())
    }

    #[pyfunction]
    fn converted(array: View<f32, 1, Convert>) -> PyResult<Vec<f32>> {
        Ok(array.to_vec()?)
    }

    #[pyfunction]
    fn clear(mut array: ViewMutDyn<f32>) {
        array.fill(0.0);
    }

    /// An argument that is written, of any of these data types.
    #[derive(FromDLPack)]
    #[expect(dead_code, reason = "whether there is a view is what the tests ask")]
    enum Writable {
        Bool(ViewMutDyn<bool>),
        Byte(ViewMutDyn<u8>),
        Int(ViewMutDyn<i32>),
        Long(ViewMutDyn<i64>),
        Single(ViewMutDyn<f32>),
        Double(ViewMutDyn<f64>),
        Complex(ViewMutDyn<Complex32>),
    }

    /// Whether a function that writes accepts the array; otherwise the error is raised.
    #[pyfunction]
    fn writable(array: Imported<Writable>) {
        drop(array);
    }
}
