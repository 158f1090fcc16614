//! Slices of views with a promise. For a view without one the compiler says what to write instead.
//!
//! The methods hide those of core's `Array`, which return an error when they are called for memory that other code may write. Whether a view
//! has a promise is known from its type, so a call that would always fail does not compile.

use dlpack_core::Error;
use dlpack_core::array::Rank;
use dlpack_core::element::Plain;

use crate::view::options::sealed::IsPromised;
use crate::view::options::{InPlace, Options};
use crate::view::{View, ViewDyn, ViewMut, ViewMutDyn};

/// Options that contain a [`Promise`](crate::view::Promise). Implemented for them, alone or in a tuple.
///
/// A generic function needs this bound to borrow a slice:
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{View, view::Promised};
///
/// fn first<O: Promised>(samples: &View<f32, 1, O>) -> Option<f32> {
///     samples.as_slice().ok()?.first().copied()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "this view cannot lend its elements as a slice: Python code may write to them",
    label = "its type has no promise that no other code writes",
    note = "read the elements in place with `iter()`, `at([i])` or `rows()`, or copy them with `to_vec()?`",
    note = "to borrow them, promise on a type of your own that no other code writes meanwhile: `unsafe impl dlpack_pyo3::view::Promise for Mine {{}}`; then take `View<f32, 1, Mine>` or `ViewMut<f32, 1, Mine>`"
)]
pub trait Promised: Options {}

#[diagnostic::do_not_recommend]
impl<O: Options> Promised for O where O::Promised: IsPromised {}

macro_rules! slices {
    ($($name:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*];)*) => {$(
        impl<T: Plain, $($parameter)* O: Options> $name<T, $($argument)* O>
        where $($bound)*
        {
            /// Borrows the elements as a slice, without a copy. The options need a [`Promise`](crate::view::Promise).
            ///
            /// # Errors
            ///
            /// Elements that are not contiguous in C order, an address that is not aligned for `T`, or a byte that is not a valid
            /// `bool`.
            #[inline]
            pub fn as_slice(&self) -> Result<&[T], Error>
            where
                O: Promised,
            {
                self.0.view.as_slice()
            }
        }
    )*};
}
slices! {
    View [const N: usize,] [N,] [[i64; N]: Rank];
    ViewMut [const N: usize,] [N,] [[i64; N]: Rank];
    ViewDyn [] [] [];
    ViewMutDyn [] [] [];
}

macro_rules! mut_slices {
    ($($name:ident [$($parameter:tt)*] [$($argument:tt)*] [$($bound:tt)*];)*) => {$(
        impl<T: Plain, $($parameter)* O: InPlace> $name<T, $($argument)* O>
        where $($bound)*
        {
            /// Borrows the elements as a slice that may be written. The options need a [`Promise`](crate::view::Promise).
            ///
            /// # Errors
            ///
            /// Elements that are not contiguous in C order, an address that is not aligned for `T`, or a byte that is not a valid
            /// `bool`.
            #[inline]
            pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error>
            where
                O: Promised,
            {
                self.0.view.as_mut_slice()
            }
        }
    )*};
}
mut_slices! {
    ViewMut [const N: usize,] [N,] [[i64; N]: Rank];
    ViewMutDyn [] [] [];
}
