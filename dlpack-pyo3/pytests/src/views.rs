//! Functions over typed arguments.

/// As in a user's module.
#[pyo3::pymodule]
pub(crate) mod views {
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use dlpack_core::array::Array;
    use dlpack_pyo3::view::{Contiguous, Convert, MayOverlap, Promise};
    use dlpack_pyo3::{FromDLPack, Imported, Managed, View, ViewDyn, ViewMut, ViewMutDyn};
    use pyo3::prelude::*;

    /// The tests call these functions from one thread, or write nothing meanwhile.
    struct Undisturbed;
    // SAFETY: the tests call these functions from one thread, or write nothing meanwhile; views of the same memory exclude each
    // other.
    #[expect(unsafe_code, reason = "as in a user's crate")]
    unsafe impl Promise for Undisturbed {}

    #[pyfunction]
    fn shape(image: View<f32, 2>) -> [usize; 2] {
        image.shape()
    }

    #[pyfunction]
    fn strides(image: View<f32, 2>) -> [isize; 2] {
        image.strides()
    }

    #[pyfunction]
    fn at(image: View<f32, 2>, row: usize, column: usize) -> Option<f32> {
        image.get([row, column])
    }

    #[pyfunction]
    fn total(samples: ViewDyn<f64>) -> f64 {
        samples.iter().sum()
    }

    #[pyfunction]
    fn flags(mask: ViewDyn<bool>) -> PyResult<Vec<bool>> {
        Ok(mask.to_vec()?)
    }

    #[pyfunction]
    fn elements(samples: ViewDyn<i32>) -> PyResult<Vec<i32>> {
        let elements = samples.to_vec()?;
        assert!(samples.iter().eq(elements.iter().copied()));
        Ok(elements)
    }

    #[pyfunction]
    fn sums(samples: View<i32, 2>) -> PyResult<(Vec<i32>, Vec<i32>)> {
        let rows = samples.rows().map(|row| row.iter().sum()).collect();
        let columns = samples.axis(1)?;
        Ok((rows, columns.map(|column| column.iter().sum()).collect()))
    }

    /// A fixed extent.
    #[pyfunction]
    fn colors(image: View<[u8; 3], 2>) -> PyResult<Vec<[u8; 3]>> {
        let colors = image.to_vec()?;
        assert!(image.iter().eq(colors.iter().copied()));
        Ok(colors)
    }

    #[pyfunction]
    fn crop(image: View<i32, 2>, rows: (usize, usize), column: usize) -> PyResult<Vec<i32>> {
        let part = image.slice(0, rows.0..rows.1)?;
        let column = part.index(1, column)?;
        Ok(column.to_vec()?)
    }

    #[pyfunction]
    fn scale(mut samples: ViewMutDyn<f64>, factor: f64) {
        samples.update(|sample| sample * factor);
    }

    #[pyfunction]
    fn number_rows(mut image: ViewMut<i32, 2>) {
        for (index, mut row) in (0..).zip(image.rows_mut()) {
            row.fill(index);
        }
    }

    #[pyfunction]
    fn copy(mut to: ViewMut<i32, 2>, from: View<i32, 2>) -> PyResult<()> {
        Ok(to.copy_from(&from)?)
    }

    /// Copies an array over itself, in any order.
    #[pyfunction]
    fn copy_over(mut to: ViewMut<i32, 2>, from: View<i32, 2, MayOverlap>) -> PyResult<()> {
        Ok(to.copy_from(&from)?)
    }

    /// `y = a * x + y`, from the first element to the last.
    #[pyfunction]
    fn axpy(a: f64, x: ViewDyn<f64>, mut y: ViewMut<f64, 1>) {
        for (index, x) in x.iter().enumerate().take(y.len()) {
            let sum = a * x + y.at([index]);
            y.set([index], sum);
        }
    }

    /// `axpy` with the written array as the first argument.
    #[pyfunction]
    fn axpy_into(y: ViewMut<f64, 1>, a: f64, x: ViewDyn<f64>) {
        axpy(a, x, y);
    }

    /// The numbers of elements of two arrays, without a read.
    #[pyfunction]
    fn lengths(a: ViewMut<f32, 2>, b: ViewMutDyn<u8>) -> (usize, usize) {
        (a.len(), b.len())
    }

    #[pyfunction]
    fn reads(a: View<[u8; 3], 2>, b: ViewMut<u8, 2>) -> (usize, usize) {
        (a.len(), b.len())
    }

    /// Fails if an array is read that an earlier argument writes.
    #[pyfunction]
    fn many(written: Vec<ViewMut<f64, 1>>, read: Vec<View<f64, 1>>) -> (usize, usize) {
        (written.len(), read.len())
    }

    /// Calls a function while a view of the array lives.
    #[pyfunction]
    fn while_read(samples: View<f64, 1>, call: &Bound<'_, PyAny>) -> PyResult<usize> {
        call.call0()?;
        Ok(samples.len())
    }

    /// The second argument is refused after the first was accepted, so nothing of the first may stay.
    #[pyfunction]
    fn promised_twice(_a: ViewMut<f64, 1, Undisturbed>, _b: View<f64, 1, (Undisturbed, Convert)>) {}

    /// A view with a promise that allows overlaps excludes other views with a promise nevertheless.
    #[pyfunction]
    fn promised_overlap(
        _a: ViewMut<f64, 1, (Undisturbed, MayOverlap)>,
        _b: View<f64, 1, (MayOverlap, Undisturbed)>,
    ) {
    }

    #[pyfunction]
    fn promised_pixels(_a: View<[u8; 3], 2, Undisturbed>, _b: ViewMut<u8, 2, Undisturbed>) {}

    /// An object that keeps views, and is dropped on any thread.
    #[pyclass(frozen)]
    struct Keeper {
        #[expect(dead_code, reason = "kept")]
        view: Kept,
    }

    enum Kept {
        #[expect(dead_code, reason = "kept")]
        Checked(View<f64, 1>),
        #[expect(dead_code, reason = "kept")]
        Free(View<f64, 1, MayOverlap>),
    }

    #[pymethods]
    impl Keeper {
        #[new]
        fn new(samples: View<f64, 1>) -> Self {
            let view = Kept::Checked(samples);
            Self { view }
        }

        #[staticmethod]
        fn free(samples: View<f64, 1, MayOverlap>) -> Self {
            let view = Kept::Free(samples);
            Self { view }
        }
    }

    #[pyfunction]
    fn negate(mut mask: ViewMutDyn<bool>) {
        mask.update(|flag| !flag);
    }

    #[pyfunction]
    fn packed(samples: View<f32, 2, Contiguous>) -> bool {
        samples.is_contiguous()
    }

    #[pyfunction]
    fn converted(samples: View<f64, 1, Convert>) -> PyResult<Vec<f64>> {
        Ok(samples.to_vec()?)
    }

    /// As `converted`, for a type that NumPy itself does not have.
    #[pyfunction]
    fn halved(samples: View<half::bf16, 1, Convert>) -> Vec<f32> {
        samples.iter().map(|sample| sample.to_f32() / 2.0).collect()
    }

    /// A type that NumPy itself does not have.
    #[pyfunction]
    fn brain(samples: View<half::bf16, 1>) -> usize {
        samples.len()
    }

    #[pyfunction]
    fn both(samples: View<f32, 2, (Contiguous, Convert)>) -> PyResult<Vec<f32>> {
        assert!(samples.is_contiguous());
        Ok(samples.to_vec()?)
    }

    #[pyfunction]
    #[pyo3(signature = (samples=None))]
    fn maybe(samples: Option<View<f32, 1>>) -> Option<usize> {
        samples.map(|samples| samples.len())
    }

    #[pyfunction]
    fn lent(samples: View<f64, 1>) -> PyResult<f64> {
        // The method of the view itself does not compile without a promise, so this calls that of the array.
        let samples: &Array<f64, [i64; 1]> = &samples;
        Ok(samples.as_slice()?.iter().sum())
    }

    #[pyfunction]
    fn sort(mut samples: ViewMut<f64, 1, Undisturbed>) -> PyResult<()> {
        let samples = samples.as_mut_slice()?;
        samples.sort_by(f64::total_cmp);
        Ok(())
    }

    #[pyfunction]
    fn add(mut to: ViewMut<f64, 1, Undisturbed>, from: View<f64, 1, Undisturbed>) -> PyResult<()> {
        for (index, item) in from.iter().enumerate().take(to.len()) {
            let sum = to.at([index]) + item;
            to.set([index], sum);
        }
        Ok(())
    }

    #[pyfunction]
    fn dot(a: View<f64, 1, Undisturbed>, b: View<f64, 1, Undisturbed>) -> PyResult<f64> {
        let (a, b) = (a.as_slice()?, b.as_slice()?);
        Ok(a.iter().zip(b).map(|(a, b)| a * b).sum())
    }

    /// One of two data types.
    #[derive(FromPyObject)]
    enum Real {
        Single(View<f32, 1>),
        Double(View<f64, 1>),
    }

    #[pyfunction]
    fn either(samples: Real) -> f64 {
        match samples {
            Real::Single(samples) => samples.iter().map(f64::from).sum(),
            Real::Double(samples) => samples.iter().sum(),
        }
    }

    /// One of two data types, with a single import.
    #[derive(FromDLPack)]
    enum Integer {
        Small(View<i32, 1>),
        Large(View<i64, 1>),
    }

    #[pyfunction]
    fn bytes(samples: Imported<Integer>) -> usize {
        match samples.0 {
            Integer::Small(samples) => samples.len() * 4,
            Integer::Large(samples) => samples.len() * 8,
        }
    }

    static KEPT: Mutex<Vec<View<f64, 1, Undisturbed>>> = Mutex::new(Vec::new());

    fn kept() -> std::sync::MutexGuard<'static, Vec<View<f64, 1, Undisturbed>>> {
        KEPT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[pyfunction]
    fn keep(samples: View<f64, 1, Undisturbed>) {
        kept().push(samples);
    }

    #[pyfunction]
    fn let_go(py: Python<'_>) -> Option<f64> {
        let samples = core::mem::take(&mut *kept());
        // On a thread without the interpreter.
        let sum = thread::spawn(move || samples.iter().flat_map(|samples| samples.iter()).sum());
        py.detach(|| sum.join().ok())
    }

    /// The tensor of a view, which other code may write again.
    #[pyfunction]
    fn unwrapped(samples: View<f64, 1, Undisturbed>) -> PyResult<bool> {
        let managed: Managed = samples.into_managed()?;
        Ok(managed.view().as_slice::<f64>().is_ok())
    }
}
