//! Every function that returns a reference to imported elements: a slice, or a view of `ndarray` or `nalgebra`.

/// The functions by name, and the ways to import a tensor for them.
#[pyo3::pymodule]
pub(crate) mod exclusive {
    use dlpack_pyo3::array::{View, ViewMut};
    use dlpack_pyo3::layout::Dims;
    use dlpack_pyo3::{
        Error, FromDLPack, Managed, OwnedSlice, SharedBuffer, Tensor, from_dlpack_with,
    };
    use pyo3::exceptions::PyKeyError;
    use pyo3::prelude::*;

    /// Runs the Python code of a test while a reference lives.
    type Between<'a> = &'a dyn Fn() -> PyResult<()>;

    /// Borrows the elements, and returns the first one before and after `between`.
    type Lender = fn(Managed, Between<'_>) -> PyResult<[f64; 2]>;

    type Matrix = View<f64, [i64; 2]>;
    type MatrixMut = ViewMut<f64, [i64; 2]>;

    /// A lender: makes `$view` of the tensor, and reads the first element of what `$lend` borrows from it.
    macro_rules! lender {
        ($tensor:ident => $view:ident = $made:expr; $lend:expr, $index:expr) => {
            |$tensor, between| {
                #[allow(unused_mut, reason = "some of them borrow it mutably")]
                let mut $view = $made;
                let lent = $lend;
                let before = lent[$index];
                between()?;
                Ok([before, lent[$index]])
            }
        };
        ($tensor:ident => $view:ident = $made:expr; $part:ident = $cut:expr; $lend:expr, $index:expr) => {
            |$tensor, between| {
                #[allow(unused_mut, reason = "some of them borrow it mutably")]
                let mut $view = $made;
                #[allow(unused_mut, reason = "as above")]
                let mut $part = $cut;
                let lent = $lend;
                let before = lent[$index];
                between()?;
                Ok([before, lent[$index]])
            }
        };
    }

    const LENDERS: &[(&str, Lender)] = &[
        (
            "TensorRef::as_slice",
            lender!(t => it = t; it.view().as_slice::<f64>()?, 0),
        ),
        (
            "Managed::as_mut_slice",
            lender!(t => it = t; it.as_mut_slice::<f64>()?, 0),
        ),
        (
            "Array::as_slice",
            lender!(t => it = Matrix::new(t)?; it.as_slice()?, 0),
        ),
        (
            "ArrayMut::as_mut_slice",
            lender!(t => it = MatrixMut::new(t)?; it.as_mut_slice()?, 0),
        ),
        (
            "Array::as_ndarray",
            lender!(t => it = Matrix::new(t)?; it.as_ndarray()?, [0, 0]),
        ),
        (
            "Array::as_ndarray of any rank",
            lender!(t => it = View::<f64, Dims>::new(t)?; it.as_ndarray()?, [0, 0]),
        ),
        (
            "ArrayMut::as_ndarray_mut",
            lender!(t => it = MatrixMut::new(t)?; it.as_ndarray_mut()?, [0, 0]),
        ),
        (
            "ArrayMut::as_ndarray_mut of any rank",
            lender!(t => it = ViewMut::<f64, Dims>::new(t)?; it.as_ndarray_mut()?, [0, 0]),
        ),
        (
            "Array::as_matrix",
            lender!(t => it = Matrix::new(t)?; it.as_matrix()?, (0, 0)),
        ),
        (
            "ArrayMut::as_matrix_mut",
            lender!(t => it = MatrixMut::new(t)?; it.as_matrix_mut()?, (0, 0)),
        ),
        (
            "Array::as_vector",
            lender!(t => it = Matrix::new(t)?; part = it.index(0, 0)?; part.as_vector()?, 0),
        ),
        (
            "ArrayMut::as_vector_mut",
            lender!(t => it = MatrixMut::new(t)?; part = it.index_mut(0, 0)?; part.as_vector_mut()?, 0),
        ),
        (
            "a slice of a View",
            lender!(t => it = Matrix::new(t)?; part = it.slice(0, 0..1)?; part.as_slice()?, 0),
        ),
        (
            "a row of a View",
            lender!(t => it = Matrix::new(t)?; part = it.rows().next().unwrap(); part.as_slice()?, 0),
        ),
        (
            "an element of an axis of a View",
            lender!(t => it = Matrix::new(t)?; part = it.axis(0)?.next().unwrap(); part.as_slice()?, 0),
        ),
        (
            "a permuted View",
            lender!(t => it = Matrix::new(t)?; part = it.permute(&[1, 0])?; part.as_ndarray()?, [0, 0]),
        ),
        (
            "a transposed View",
            lender!(t => it = Matrix::new(t)?; part = it.transpose(); part.as_ndarray()?, [0, 0]),
        ),
        (
            "a reshaped View",
            lender!(t => it = Matrix::new(t)?; part = it.reshape([6])?; part.as_slice()?, 0),
        ),
        (
            "a slice of a ViewMut",
            lender!(t => it = MatrixMut::new(t)?; part = it.slice_mut(0, 0..1)?; part.as_mut_slice()?, 0),
        ),
        (
            "a row of a ViewMut",
            lender!(t => it = MatrixMut::new(t)?; part = it.rows_mut().next().unwrap(); part.as_mut_slice()?, 0),
        ),
        (
            "a permuted ViewMut",
            lender!(t => it = MatrixMut::new(t)?; part = it.permute_mut(&[1, 0])?; part.as_ndarray_mut()?, [0, 0]),
        ),
        (
            "a slice of a Managed",
            lender!(t => it = t.slice(0, 0..1)?; it.view().as_slice::<f64>()?, 0),
        ),
        (
            "an index of a Managed",
            lender!(t => it = t.index(0, 0)?; it.as_mut_slice::<f64>()?, 0),
        ),
        (
            "an exported Managed",
            lender!(t => it = dlpack_pyo3::DLPack::into_dlpack(t)?; it.as_mut_slice::<f64>()?, 0),
        ),
        (
            "SharedBuffer::try_as_slice",
            lender!(t => it = SharedBuffer::<f64>::from_dlpack(t)?; it.try_as_slice()?, 0),
        ),
        (
            "SharedBuffer::try_as_mut_slice",
            lender!(t => it = SharedBuffer::<f64>::from_dlpack(t)?; it.try_as_mut_slice()?, 0),
        ),
        (
            "SharedBuffer::get_mut",
            lender!(t => it = SharedBuffer::<f64>::from_dlpack(t)?; it.get_mut().ok_or(Error::MayChange)?, 0),
        ),
        (
            "OwnedSlice::new",
            lender!(t => it = OwnedSlice::new(Matrix::new(t)?, |matrix| matrix.as_slice())?; &it[..], 0),
        ),
        (
            "OwnedSlice::deref of a View",
            lender!(t => it = Matrix::new(t)?.into_slice()?; &*it, 0),
        ),
        ("OwnedSlice::as_ref of a SharedBuffer", |t, between| {
            let buffer = SharedBuffer::<f64>::from_dlpack(t)?;
            let slice = buffer.try_into_slice().map_err(|_| Error::MayChange)?;
            let lent: &[f64] = slice.as_ref();
            let before = lent[0];
            between()?;
            Ok([before, lent[0]])
        }),
    ];

    type Source = fn(&Bound<'_, PyAny>) -> PyResult<Managed>;

    const SOURCES: &[(&str, Source)] = &[
        ("from_dlpack", dlpack_pyo3::from_dlpack),
        ("from_dlpack_with a copy", |object| {
            from_dlpack_with(object, None, Some(true))
        }),
        ("a View", |object| {
            Ok(object
                .extract::<dlpack_pyo3::View<f64, 2>>()?
                .into_managed()?)
        }),
        ("a ViewMut", |object| {
            Ok(object
                .extract::<dlpack_pyo3::ViewMut<f64, 2>>()?
                .into_managed()?)
        }),
        ("a Tensor", |object| {
            Ok(object.extract::<Tensor>()?.into_managed())
        }),
    ];

    #[pyfunction]
    fn lenders() -> Vec<&'static str> {
        LENDERS.iter().map(|(name, _)| *name).collect()
    }

    #[pyfunction]
    fn sources() -> Vec<&'static str> {
        SOURCES.iter().map(|(name, _)| *name).collect()
    }

    fn named<T: Copy>(table: &[(&str, T)], name: &str) -> PyResult<T> {
        let found = table.iter().find(|(found, _)| *found == name);
        found
            .map(|(_, entry)| *entry)
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// Imports `object` by the source, lends its elements by the lender, and calls `between` while they are lent.
    #[pyfunction]
    fn lend(
        object: &Bound<'_, PyAny>,
        source: &str,
        lender: &str,
        between: &Bound<'_, PyAny>,
    ) -> PyResult<[f64; 2]> {
        let tensor = named(SOURCES, source)?(object)?;
        named(LENDERS, lender)?(tensor, &|| between.call0().map(drop))
    }

    /// The bytes of a slice of `bool` over an import that is flagged as a copy.
    #[pyfunction]
    fn lend_bools(object: &Bound<'_, PyAny>, between: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let tensor = dlpack_pyo3::from_dlpack(object)?;
        let view = tensor.view();
        let lent: &[bool] = view.as_slice()?;
        between.call0()?;
        Ok(lent.iter().map(|flag| u8::from(*flag)).collect())
    }
}
