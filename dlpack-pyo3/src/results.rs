//! Results of functions: a [`Tensor`], or an array of a library, over any tensor.

use dlpack_core::{DLPack, Managed, Record, binding};
use pyo3::prelude::*;

use crate::class::tensor::Tensor;
use crate::error::OrRaise;
use crate::lender::{Kept, Place};
use crate::library::{
    self,
    function::{CUPY, JAX, Library, TORCH},
};

/// A result that is a [`Tensor`] in Python: any [`DLPack`] value, such as a `Vec`, an `ndarray::Array`, a struct with the
/// derive or a [`Managed`].
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::Exported;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn ramp(len: u16) -> Exported<Vec<f32>> {
///     Exported((0..len).map(f32::from).collect())
/// }
/// ```
///
/// It is the mirror of [`Imported`](crate::Imported). The value is moved, and nothing is copied. A value that describes
/// itself wrongly is a `BufferError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exported<T>(pub T);

impl<'py, T: DLPack + 'static> IntoPyObject<'py> for Exported<T> {
    type Target = Tensor;
    type Output = Bound<'py, Tensor>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = <Tensor as IntoPyObject<'py>>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Bound::new(py, Tensor::new(self.0.into_dlpack()?))
    }
}

/// A result that Python gets as an array of NumPy's, over the memory of the value that it keeps. Nothing is copied.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::Numpy;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn ramp(len: u16) -> Numpy<Vec<f32>> {
///     Numpy((0..len).map(f32::from).collect())
/// }
/// ```
///
/// Any [`DLPack`] value will do: a `Vec`, an `ndarray::Array`, a struct with the derive, a [`Managed`](crate::Managed). The
/// array may be written where nobody else has the memory, and where others may write it too. Numbers that NumPy does not
/// have, such as `bf16`, are those of `ml_dtypes`.
///
/// What makes no array raises: a value that describes itself wrongly (`BufferError`), memory of a GPU (`TypeError`), and
/// NumPy where it is not installed (`ImportError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Numpy<T>(pub T);

impl<'py, T: DLPack + 'static> IntoPyObject<'py> for Numpy<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::NDARRAY;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        library::numpy::array(py, self.0.into_dlpack()?)
    }
}

/// Records that NumPy gets as a structured array, over the memory of the list.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{Numpy, Record, Records};
/// use pyo3::prelude::*;
///
/// #[derive(Record)]
/// #[repr(C)]
/// struct Trade {
///     price: f64,
///     size: u32,
/// }
///
/// #[pyfunction]
/// fn trades(count: u32) -> Numpy<Records<Trade>> {
///     Numpy(Records((0..count).map(|size| Trade { price: 1.5, size }).collect()))
/// }
/// ```
///
/// The array has the names, the types and the padding of the struct, `dtype([('price', '<f8'), ('size', '<u4')])` with 4 bytes of
/// padding here. It may be written. If the records have code that runs when they are dropped, it is read-only.
///
/// A field that NumPy has no data type for, such as `u128`, is a `BufferError`. Python code can read the padding of the struct,
/// as it can that of a struct from C: do not leave secrets there.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Records<R>(pub Vec<R>);

impl<'py, R: Record> IntoPyObject<'py> for Numpy<Records<R>> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::NDARRAY;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let Records(mut records) = self.0;
        // What is written there is never a record again, unless it is dropped as one.
        let read_only = core::mem::needs_drop::<R>();
        let place = Place::of_records(py, &binding::Records::of_mut(&mut records), read_only);
        library::numpy::asarray(&place.or_fetch(py)?.put(Kept::Records(Box::new(records))))
    }
}

/// A result for each library: its name there, what it makes of a value, and more to say.
macro_rules! results {
    ($($(#[$more:meta])* $name:ident: $library:ident, $module:literal, $class:literal;)*) => {$(
        #[doc = concat!("A result that is a `", $module, ".", $class, "` in Python: any [`DLPack`] value, such as a `Vec`, an")]
        /// `ndarray::Array`, a struct with the derive or a [`Managed`].
        ///
        /// ```no_run,standalone_crate
        #[doc = concat!("use dlpack_pyo3::", stringify!($name), ";")]
        /// use pyo3::prelude::*;
        ///
        /// #[pyfunction]
        #[doc = concat!("fn ramp(len: u16) -> ", stringify!($name), "<Vec<f32>> {")]
        #[doc = concat!("    ", stringify!($name), "((0..len).map(f32::from).collect())")]
        /// }
        /// ```
        ///
        #[doc = concat!("It is made by the library's own `from_dlpack`. Where `", $module, "` is not installed, that is")]
        /// a `ModuleNotFoundError`; what it refuses, it says itself.
        $(#[$more])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name<T>(pub T);

        impl<'py, T: DLPack + 'static> IntoPyObject<'py> for $name<T> {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;

            #[cfg(feature = "stubs")]
            const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr =
                pyo3::type_hint_identifier!($module, $class);

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                array(py, $library.find(py)?, self.0.into_dlpack()?)
            }
        }
    )*};
}

results! {
    /// PyTorch writes to what it gets, also where it is told not to. So hand out what may be written: data that nobody else
    /// has, or a [`SharedBuffer`](crate::SharedBuffer).
    Torch: TORCH, "torch", "Tensor";
    /// JAX never writes, and copies what is not aligned to 64 bytes, which a [`SharedBuffer`](crate::SharedBuffer) is. It
    /// turns numbers of 64 bits into those of 32, unless it is told by `jax_enable_x64` to leave them alone.
    Jax: JAX, "jax", "Array";
    /// The data lies on a GPU: CuPy refuses what does not.
    Cupy: CUPY, "cupy", "ndarray";
}

impl Library {
    /// An array of the library's over any [`DLPack`] value.
    ///
    /// # Errors
    ///
    /// `BufferError` for a value that describes itself wrongly, and whatever the library raises.
    pub fn array<'py, T: DLPack + 'static>(
        &self,
        py: Python<'py>,
        value: T,
    ) -> PyResult<Bound<'py, PyAny>> {
        array(py, self, value.into_dlpack()?)
    }
}

#[inline(never)]
fn array<'py>(py: Python<'py>, library: &Library, tensor: Managed) -> PyResult<Bound<'py, PyAny>> {
    if library.is_numpy() {
        return library::numpy::array(py, tensor);
    }
    library.call(Bound::new(py, Tensor::new(tensor))?.as_any())
}
