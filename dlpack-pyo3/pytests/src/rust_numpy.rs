//! The examples of rust-numpy's README, written with this crate: not longer, and for arrays of every library.

#[pyo3::pymodule]
pub(crate) mod rust_ext {
    use dlpack_pyo3::view::Promise;
    use dlpack_pyo3::{DLPack, Tensor, ViewDyn, ViewMutDyn};
    use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD};
    use pyo3::prelude::*;

    struct Alone;
    // SAFETY: these functions hold the GIL, call no Python, and keep nothing.
    #[expect(unsafe_code, reason = "as in a user's crate")]
    unsafe impl Promise for Alone {}

    fn axpy(a: f64, x: ArrayViewD<'_, f64>, y: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        a * &x + &y
    }

    fn mult(a: f64, mut x: ArrayViewMutD<'_, f64>) {
        x *= a;
    }

    #[pyfunction(name = "axpy")]
    fn axpy_py(a: f64, x: ViewDyn<f64, Alone>, y: ViewDyn<f64, Alone>) -> PyResult<Tensor> {
        let (x, y) = (x.as_ndarray()?, y.as_ndarray()?);
        Ok(axpy(a, x, y).into_dlpack().map(Tensor::new)?)
    }

    #[pyfunction(name = "mult")]
    fn mult_py(a: f64, mut x: ViewMutDyn<f64, Alone>) -> PyResult<()> {
        mult(a, x.as_ndarray_mut()?);
        Ok(())
    }
}

#[pyo3::pyfunction]
pub(crate) fn evaluate(py: pyo3::Python<'_>) -> pyo3::PyResult<()> {
    use dlpack_pyo3::View;
    use pyo3::prelude::*;

    let np = py.import("numpy")?;
    let array = np.call_method1(
        "absolute",
        (np.call_method1("array", (vec![-1_i32, -2, -3],))?,),
    )?;
    let array: View<i64, 1> = array.extract()?;
    assert!(array.iter().eq([1, 2, 3]));
    Ok(())
}
