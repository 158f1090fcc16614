//! Arrays as arguments: of one element type and rank, from any library, as they lie.
//!
//! ```text
//! NumPy's own array ──its struct──┐
//!                                 ├─fits?─> UnownedArray ──> View<T, N, O> ──deref──> dlpack_core::array::Array
//! object ──from_dlpack──> Managed ┘   │ no                       ├─ a slot in the list of its thread, against overlaps
//!                                     │                          └─ with a promise: a lease of its addresses
//!                                     └─> numpy.asarray(object, dtype), with `Convert`; else a `TypeError`
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | the four types of arrays that the processor reads |
//! | `leased` | how each is made of an argument |
//! | `needs` | what an argument has to be, and the `TypeError` for an argument that does not meet that |
//! | `records` | views of structured arrays |
//! | `slices` | `as_slice` and `as_mut_slice`, which do not compile without a promise |
//! | `options` | what a view may ask beside type and rank, and the promise that a crate can give |
//! | `device` | arrays in the memory of a GPU, for `cudarc` |
//! | `live` | the views that are alive on each thread: what is written overlaps no other argument |
//! | `lease` | the memory of a view with a promise, which no other one may write, or read where it is written |
//! | `table` | the table of these leases, one for all extension modules of a process |

#[cfg(feature = "cudarc")]
mod device;
mod lease;
mod leased;
mod live;
mod needs;
mod options;
mod records;
mod slices;
mod table;

#[cfg(feature = "cudarc")]
pub use device::{DeviceView, DeviceViewDyn, DeviceViewMut, DeviceViewMutDyn};
pub use options::{AsBytes, Contiguous, Convert, InPlace, MayOverlap, Options, Promise};
pub use slices::Promised;

use core::fmt;
use core::ops::{Deref, DerefMut};

use dlpack_core::array::{self, Array, ArrayElement, ArrayMut, Rank};
use dlpack_core::binding::share_root;
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::tensor::Items;
use dlpack_core::{DLPack, Error, FromDLPack, Managed, OwnedSlice, TensorRef};
use pyo3::prelude::*;

use crate::view::leased::{Keeper, Leased};

/// An argument: an array of `T` with `N` axes, of NumPy, torch, JAX or any other library, where it lies.
///
/// It derefs to an [`Array`], which has shape and strides, elements by index, iterators over elements, rows and axes,
/// and copies. It is `'static` and `Send`: it can be kept in a struct, or go to a thread.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::View;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn brightest(image: View<f32, 2>) -> f32 {
///     let [height, width] = image.shape();
///     println!("{height} rows of {width}");
///     image.iter().fold(f32::MIN, f32::max)
/// }
/// ```
///
/// Anything else is a `TypeError` that says what was found and what is needed, with the name of the argument.
///
/// | for | write |
/// |---|---|
/// | an array that may be written | [`ViewMut<f32, 2>`](ViewMut) |
/// | any number of axes | [`ViewDyn<f32>`](ViewDyn) |
/// | shape `(h, w, 3)` | `View<[u8; 3], 2>` |
/// | a structured array | `View<Trade, 1>` with a [`Record`](macro@crate::Record) |
/// | elements one after another | `View<f32, 2, Contiguous>` ([`Contiguous`]) |
/// | the bytes of any contiguous array | `View<u8, 1, AsBytes>` ([`AsBytes`]) |
/// | lists, numbers, other dtypes too | `View<f32, 2, Convert>` ([`Convert`]) |
/// | slices and matrices of other crates | `View<f32, 2, Mine>` with a [`Promise`] |
/// | `None` too | `Option<View<f32, 2>>` |
/// | one of several dtypes | an enum over views with `#[derive(FromPyObject)]` |
pub struct View<T, const N: usize, O = ()>(Leased<array::View<T, [i64; N], Keeper>, O>);

/// As a [`View`], for an array that is written in place. It derefs to an [`ArrayMut`]. A read-only array is refused.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::ViewMut;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn double(mut samples: ViewMut<f64, 1>) {
///     samples.update(|sample| sample * 2.0);
/// }
/// ```
pub struct ViewMut<T, const N: usize, O = ()>(Leased<array::ViewMut<T, [i64; N], Keeper>, O>);

/// As a [`View`], for any number of axes.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::ViewDyn;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn mean(samples: ViewDyn<f64>) -> f64 {
///     samples.iter().sum::<f64>() / samples.len() as f64
/// }
/// ```
pub struct ViewDyn<T, O = ()>(Leased<array::View<T, Dims, Keeper>, O>);

/// As a [`ViewMut`], for any number of axes.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::ViewMutDyn;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn clear(mut samples: ViewMutDyn<f64>) {
///     samples.fill(0.0);
/// }
/// ```
pub struct ViewMutDyn<T, O = ()>(Leased<array::ViewMut<T, Dims, Keeper>, O>);

/// Implements what the views have in common. A row has the name of the view, its parameters besides the element type as they are
/// declared, passed and bounded, the view of core inside it, the array that it dereferences to, and the trait of its options.
macro_rules! views {
    ($(
        $name:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*] over $view:ident<$list:ty> as $array:ident, $options:ident;
    )*) => {$(
        impl<T: Plain, $($parameter)* O: $options> $name<T, $($argument)* O>
        where $($bound)*
        {
            /// The tensor. Others may write to it again, whatever was promised of the view.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfMemory`]: of an array of NumPy's own, which a view reads where it lies, a tensor is made only now.
            pub fn into_managed(self) -> Result<Managed, Error> {
                self.0.into_managed()
            }

            /// A view of memory that a struct keeps in a [`SharedBuffer`](crate::SharedBuffer): of the buffer, or of a class that
            /// exports it. It has a handle to the memory, so it may outlive `value`.
            ///
            /// With a [`Promise`], which a class may make for itself, it is the way to slices of memory that others have too.
            ///
            /// ```no_run,standalone_crate
            /// use dlpack_pyo3::{DLPack, SharedBuffer, View, dlpack_pymethods, view::Promise};
            /// use pyo3::prelude::*;
            ///
            /// #[pyclass(frozen)]
            /// #[derive(DLPack)]
            /// struct Signal {
            ///     #[dlpack(data)]
            ///     samples: SharedBuffer<f32>,
            /// }
            ///
            /// // SAFETY: `peak` holds the GIL while it has the slice, and calls no Python. The docs of the class forbid other
            /// // threads to write to its arrays without the GIL.
            /// unsafe impl Promise for Signal {}
            ///
            /// #[dlpack_pymethods]
            /// #[pymethods]
            /// impl Signal {
            ///     fn peak(&self) -> PyResult<f32> {
            ///         let samples = View::<f32, 1, Self>::of(self)?;
            ///         Ok(samples.as_slice()?.iter().copied().fold(0.0, f32::max))
            ///     }
            /// }
            /// ```
            ///
            /// # Errors
            ///
            /// [`Error::NoSharedBuffer`]; the errors of [`DLPack::describe`](crate::DLPack::describe); another element type or rank; for
            /// writing, read-only memory; an overlap with another view, as for an argument.
            pub fn of(value: &(impl DLPack + ?Sized)) -> Result<Self, Error> {
                let tensor = share_root(&mut value.describe()?, None);
                let tensor = tensor.unwrap_or(Err(Error::NoSharedBuffer))?;
                Leased::import(tensor).map(Self)
            }
        }

        impl<T, $($parameter)* O> Deref for $name<T, $($argument)* O> {
            type Target = $array<T, $list>;

            #[inline]
            fn deref(&self) -> &Self::Target {
                &self.0.view
            }
        }

        /// Iterates over the elements in row-major order, as [`Array::iter`] does.
        impl<'a, T: ArrayElement, $($parameter)* O> IntoIterator for &'a $name<T, $($argument)* O>
        where $($bound)*
        {
            type Item = T;
            type IntoIter = Items<'a, T>;

            #[inline]
            fn into_iter(self) -> Items<'a, T> {
                self.iter()
            }
        }

        impl<'a, 'py, T: ArrayElement, $($parameter)* O: $options> FromPyObject<'a, 'py> for $name<T, $($argument)* O>
        where $($bound)*
        {
            type Error = PyErr;

            #[cfg(feature = "stubs")]
            const INPUT_TYPE: pyo3::inspect::PyStaticExpr =
                if O::CONVERT { crate::hints::ARRAY_LIKE } else { crate::hints::ARRAY };

            #[inline]
            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                Leased::extract(&object).map(Self)
            }
        }

        /// For enums over data types: [`Imported`](crate::Imported) takes the first variant that fits.
        impl<T: Plain, $($parameter)* O: $options> FromDLPack for $name<T, $($argument)* O>
        where $($bound)*
        {
            fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
                Leased::import(tensor).map(Self)
            }

            fn fits(tensor: &TensorRef<'_>) -> bool {
                Leased::<array::$view<T, $list, Keeper>, O>::fits(tensor)
            }
        }

        impl<T: ArrayElement, $($parameter)* O: $options> fmt::Debug for $name<T, $($argument)* O>
        where $($bound)*
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0.view).finish()
            }
        }
    )*};
}

views! {
    View [const N: usize,] [N,] [[i64; N]: Rank] over View<[i64; N]> as Array, Options;
    ViewMut [const N: usize,] [N,] [[i64; N]: Rank] over ViewMut<[i64; N]> as ArrayMut, InPlace;
    ViewDyn [] [] [] over View<Dims> as Array, Options;
    ViewMutDyn [] [] [] over ViewMut<Dims> as ArrayMut, InPlace;
}

/// Conversions of the views that only read.
macro_rules! reading_views {
    ($($name:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*];)*) => {$(
        impl<T: Plain, $($parameter)* O: Options + 'static> $name<T, $($argument)* O>
        where $($bound)*
        {
            /// Converts the view to a slice that owns it, for containers of other crates: `bytes::Bytes::from_owner(slice.into_bytes())`,
            /// a buffer of Arrow, a tensor of burn. Nothing is copied.
            ///
            /// The slice keeps the array, and the lease of the [`Promise`], until its last clone is dropped, on any thread, with or
            /// without the GIL. The promise holds for that long: if containers outlive the call, nothing may write to the array after
            /// the call either.
            ///
            /// ```no_run,standalone_crate
            /// use dlpack_pyo3::{OwnedSlice, View, view::Promise};
            /// use pyo3::prelude::*;
            ///
            /// /// The callers of this module never write to an array that they passed to it.
            /// struct Frozen;
            /// // SAFETY: the documentation of the module requires it of its callers.
            /// unsafe impl Promise for Frozen {}
            ///
            /// #[pyclass(frozen)]
            /// struct Index {
            ///     keys: OwnedSlice<u64>,
            /// }
            ///
            /// #[pymethods]
            /// impl Index {
            ///     #[new]
            ///     fn new(keys: View<u64, 1, Frozen>) -> PyResult<Self> {
            ///         Ok(Self { keys: keys.into_slice()? })
            ///     }
            /// }
            /// ```
            ///
            /// # Errors
            ///
            /// Elements that are not contiguous in C order, an address that is not aligned for `T`, or a byte that is not a valid
            /// `bool`; [`Error::OutOfMemory`]. The view is then dropped.
            pub fn into_slice(self) -> Result<OwnedSlice<T>, Error>
            where
                O: Promised,
            {
                OwnedSlice::new(self, |view| view.as_slice())
            }
        }
    )*};
}

reading_views! {
    View [const N: usize,] [N,] [[i64; N]: Rank];
    ViewDyn [] [] [];
}

impl<T, const N: usize, O> DerefMut for ViewMut<T, N, O> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.view
    }
}

impl<T, O> DerefMut for ViewMutDyn<T, O> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.view
    }
}
