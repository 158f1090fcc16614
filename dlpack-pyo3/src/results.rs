//! Results of functions: any tensor as a [`Tensor`] or as an array of a library. The library is chosen by the result type, by the
//! caller, or by an argument.
//!
//! ```text
//! Rust value ──▶ Exported ──▶ Tensor
//!            ├─▶ Numpy ─────▶ array by NumPy's C API
//!            ├─▶ Torch ─────▶ tensor by PyTorch's exchange table
//!            ├─▶ Jax, Cupy, Library ──▶ array by the library's from_dlpack
//!            └─▶ Like ──▶ any of these, or an array by the exchange table of the argument's class
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | results of a library that the type or the caller names |
//! | `like` | results of the library of an argument |
//! | `new_tensor` | new memory, written before it is read |

mod like;
mod new_tensor;

pub use like::{Like, Prototype};

use dlpack_core::array::Rank;
use dlpack_core::element::Plain;
use dlpack_core::{DLPack, Record, Shaped, binding};
use pyo3::prelude::*;

use crate::class::{arrays::array_of_tensor, tensor::Tensor};
use crate::error::OrRaise;
use crate::lender::{MemoryOwner, UnfilledLender};
use crate::library::{
    self,
    function::{CUPY, JAX, Library, TORCH},
};
use crate::view::{InPlace, Options, View, ViewDyn, ViewMut, ViewMutDyn};

/// The constructor of a result with a shape.
macro_rules! shaped {
    ($name:ident) => {
        impl<B, S> $name<Shaped<B, S>> {
            /// A buffer with a shape, in row-major order: `shaped(vec, [2, 3])` is an array of 2 rows.
            ///
            /// ```no_run,standalone_crate
            #[doc = concat!("use dlpack_pyo3::{", stringify!($name), ", Shaped};")]
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            #[doc = concat!("fn zeros(rows: usize, columns: usize) -> ", stringify!($name), "<Shaped<Vec<f32>, [usize; 2]>> {")]
            #[doc = concat!("    ", stringify!($name), "::shaped(vec![0.0; rows * columns], [rows, columns])")]
            /// }
            /// ```
            ///
            /// If the buffer has fewer elements than the shape needs, the conversion raises `BufferError`.
            pub const fn shaped(buffer: B, shape: S) -> Self {
                Self(Shaped::new(buffer, shape))
            }
        }
    };
}

/// A result that is a [`Tensor`] in Python: any [`DLPack`] value, such as a `Vec`, an `ndarray::Array`, a struct with the
/// derive or a [`Managed`](crate::Managed).
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
/// The inverse of [`Imported`](crate::Imported). The value is moved, not copied. An invalid description of the value raises
/// `BufferError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exported<T>(pub T);

shaped!(Exported);

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

/// A view as a result is a [`Tensor`] over its memory, as of [`Exported`]. A promise for the view ends.
macro_rules! views {
    ($($view:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*] $options:ident;)*) => {$(
        impl<'py, T: Plain, $($parameter)* O: $options> IntoPyObject<'py> for $view<T, $($argument)* O>
        where $($bound)*
        {
            type Target = Tensor;
            type Output = Bound<'py, Tensor>;
            type Error = PyErr;

            #[cfg(feature = "stubs")]
            const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr =
                <Tensor as IntoPyObject<'py>>::OUTPUT_TYPE;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                Bound::new(py, Tensor::new(self.into_managed()?))
            }
        }
    )*};
}

views! {
    View [const N: usize,] [N,] [[i64; N]: Rank] Options;
    ViewMut [const N: usize,] [N,] [[i64; N]: Rank] InPlace;
    ViewDyn [] [] [] Options;
    ViewMutDyn [] [] [] InPlace;
}

/// A result that is a `numpy.ndarray` in Python, over the memory of the value, which the array owns. Nothing is copied.
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
/// Accepts any [`DLPack`] value: a `Vec`, an `ndarray::Array`, a struct with the derive, a [`Managed`](crate::Managed). The
/// array is writable if no other code has the memory, or if other code may write to it too; an array of `bool` is so only over a
/// [`SharedBuffer`](dlpack_core::SharedBuffer). Types that NumPy lacks, such as
/// `bf16`, are those of `ml_dtypes`.
///
/// Raises `BufferError` for an invalid description or a type that NumPy lacks, such as `u128`, `TypeError` for memory of a GPU,
/// and `ImportError` if NumPy, or `ml_dtypes` where the type needs it, is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Numpy<T>(pub T);

shaped!(Numpy);

impl<'py, T: DLPack + 'static> IntoPyObject<'py> for Numpy<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr =
        <crate::hints::ArrayOf<T> as IntoPyObject<'py>>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        library::numpy::array_over_value(py, self.0)
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
        // Rust code reads written bytes as a record again only in a record's `Drop`.
        let read_only = core::mem::needs_drop::<R>();
        let described = binding::Records::of_mut(&mut records);
        let lender = UnfilledLender::of_records(py, &described, read_only).or_fetch(py)?;
        let owner = MemoryOwner::Records(Box::new(records));
        library::numpy::asarray_of(&lender.fill_with(owner))
    }
}

/// A result type for each library: the library, its array class in Python, and further docs.
macro_rules! results {
    ($($(#[$more:meta])* $name:ident: $library:ident, $module:literal, $class:literal;)*) => {$(
        #[doc = concat!("A result that is a `", $module, ".", $class, "` in Python: any [`DLPack`] value, such as a `Vec`, an")]
        /// `ndarray::Array`, a struct with the derive or a [`Managed`](crate::Managed).
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
        #[doc = concat!("If `", $module, "` is not installed, the conversion raises `ModuleNotFoundError`.")]
        /// Exceptions of the library are passed on.
        $(#[$more])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name<T>(pub T);

        shaped!($name);

        impl<'py, T: DLPack + 'static> IntoPyObject<'py> for $name<T> {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;

            #[cfg(feature = "stubs")]
            const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr =
                pyo3::type_hint_identifier!($module, $class);

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                array_of_tensor(py, $library.import_once(py)?, self.0.into_dlpack()?)
            }
        }
    )*};
}

results! {
    /// PyTorch writes to tensors even if they are read-only. So return memory that may be written: data that no other code has,
    /// or a [`SharedBuffer`](crate::SharedBuffer).
    Torch: TORCH, "torch", "Tensor";
    /// JAX never writes, and copies memory that is not aligned to 64 bytes. A [`SharedBuffer`](crate::SharedBuffer) is
    /// aligned, unless it was made from a `Vec` or an array.
    /// JAX converts 64-bit numbers to 32 bits, unless `jax_enable_x64` is set.
    Jax: JAX, "jax", "Array";
    /// The data must be on a GPU; CuPy refuses any other.
    Cupy: CUPY, "cupy", "ndarray";
}

impl Library {
    /// Creates an array of the library over any [`DLPack`] value.
    ///
    /// # Errors
    ///
    /// `BufferError` for an invalid description of the value, and any exception of the library.
    pub fn array<'py, T: DLPack + 'static>(
        &self,
        py: Python<'py>,
        value: T,
    ) -> PyResult<Bound<'py, PyAny>> {
        array_of_tensor(py, self, value.into_dlpack()?)
    }
}
