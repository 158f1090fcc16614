//! Options of a view, besides element type and rank.
#![expect(unsafe_code, reason = "a promise is an unsafe trait")]

use crate::view::options::sealed::{No, OrPromised, Yes};

/// Requirements of a [`View`](crate::View) besides element type and rank: none (`()`), [`Contiguous`], [`AsBytes`], [`Convert`],
/// [`MayOverlap`], a [`Promise`], or a tuple of these.
pub trait Options: sealed::Options {}

impl<O: sealed::Options> Options for O {}

/// Options of an array that is written in place: all but [`Convert`], because writes to its copy would be lost.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an option of a writable view",
    label = "expected `Contiguous`, `AsBytes`, `MayOverlap`, a type of yours with a `Promise`, or a tuple of these",
    note = "`Convert` makes a copy, and writes to it would be lost: take a `View`, and return the result"
)]
pub trait InPlace: Options + sealed::InPlace {}

#[diagnostic::do_not_recommend]
impl<O: Options + sealed::InPlace> InPlace for O {}

/// The elements are contiguous, in C order.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{View, view::Contiguous};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn checksum(data: View<u8, 1, Contiguous>) -> u32 {
///     data.iter().map(u32::from).sum()
/// }
/// ```
#[derive(Debug)]
pub struct Contiguous;

/// An argument that does not fit is converted: a list, a number, an array of another type. NumPy makes the copy
/// (`numpy.asarray(x, dtype)`), and truncates fractions if integers are required.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{View, view::Convert};
/// use pyo3::prelude::*;
///
/// /// Takes `[1, 2, 3]`, too.
/// #[pyfunction]
/// fn norm(vector: View<f64, 1, Convert>) -> f64 {
///     vector.iter().map(|x| x * x).sum::<f64>().sqrt()
/// }
/// ```
///
/// Only an argument can be converted. A view of a tensor that was imported before, such as a variant of an [`Imported`](crate::Imported)
/// enum, does not compile with this option.
#[derive(Debug)]
pub struct Convert;

/// The bytes of any contiguous array, whatever its data type and its shape: what the buffer protocol gives for `PyBUF_SIMPLE`. It is an
/// option of `View<u8, 1, ..>` and `ViewMut<u8, 1, ..>`, and excludes [`Convert`].
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{View, view::AsBytes};
/// use pyo3::prelude::*;
///
/// /// Takes arrays of any library, `bytes`, `memoryview`.
/// #[pyfunction]
/// fn checksum(data: View<u8, 1, AsBytes>) -> u32 {
///     data.iter().map(u32::from).sum()
/// }
/// ```
///
/// The array must be contiguous in C order. A buffer may have items of any kind, such as the structs of `ctypes`, except references
/// to Python objects. NumPy does not export its arrays of records, of dates or of another byte order: pass `x.view('u1')`.
#[derive(Debug)]
pub struct AsBytes;

/// The array may share memory with other arguments, even if one of them is written. Use it for views that are kept, too.
///
/// Without this option a view is refused if it overlaps another view on the same thread and one of the two writes. The
/// arguments of a call are extracted on one thread, so `axpy(2.0, x[::-1], x)` is a `TypeError` instead of a wrong result: the
/// loop would read elements that it has already written. Two arrays that are only read may always overlap. It suffices if one of
/// the two views has the option.
///
/// Arrays one behind the other in memory, two single columns of a matrix and two channels of an image are recognised as disjoint.
/// Arrays that interleave in another way, such as two blocks of columns, are refused though they share no memory.
///
/// | use it if | because |
/// |---|---|
/// | the result is right in spite of the overlap: each element is read before it is written, and not again | `add_to(x, x)` is then what the caller means |
/// | a view is kept in a struct | the check lasts as long as the view, so no other view on this thread could write to that array |
///
/// The option is not about soundness: views without a [`Promise`] never need it, and views with one are kept apart in any case.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{View, ViewMut, view::MayOverlap};
/// use pyo3::prelude::*;
///
/// /// `to[i] += from[i]`: right, too, if both are one array.
/// #[pyfunction]
/// fn add_to(mut to: ViewMut<f64, 1>, from: View<f64, 1, MayOverlap>) {
///     for (i, x) in from.iter().enumerate().take(to.len()) {
///         let sum = to.at([i]) + x;
///         to.set([i], sum);
///     }
/// }
///
/// /// Sees what other code writes to its weights, and does not prevent it.
/// #[pyclass(frozen)]
/// struct Model {
///     weights: View<f64, 2, MayOverlap>,
/// }
/// ```
#[derive(Debug)]
pub struct MayOverlap;

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an option of a view",
    label = "expected `Contiguous`, `Convert`, `AsBytes`, `MayOverlap`, a type of yours with a `Promise`, or a tuple of these",
    note = "with `unsafe impl dlpack_pyo3::view::Promise for {Self} {{}}` you promise that nothing else writes; see its documentation"
)]
/// A promise that a crate makes once, on a type of its own: while its views live, no other code writes to their arrays, and no
/// other code accesses the arrays that they write to.
///
/// With it, `as_slice`, `into_slice`, `as_mut_slice`, `as_ndarray` and the like work for every argument, and all reads are as fast as
/// those of a slice. Two views with a promise over the same memory are refused when the second is created, if one of them is a
/// [`ViewMut`](crate::ViewMut), in any extension module, interpreter or thread. A call that passes the same array twice
/// therefore does not break the promise.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{ViewMut, View, view::Promise};
/// use pyo3::prelude::*;
///
/// /// The functions of this module hold the GIL, keep no views, and do not call Python.
/// struct Undisturbed;
/// // SAFETY: so no Python code runs while they do. The docs forbid other threads to write to the arrays without the GIL.
/// unsafe impl Promise for Undisturbed {}
///
/// #[pyfunction]
/// fn sort(mut values: ViewMut<f64, 1, Undisturbed>) -> PyResult<()> {
///     values.as_mut_slice()?.sort_by(f64::total_cmp);
///     Ok(())
/// }
/// ```
///
/// A class can promise for itself (`unsafe impl Promise for Image {}`). [`View::of`](crate::View::of) then lends the memory that it keeps.
///
/// # Safety
///
/// While a [`View`](crate::View) with this option lives, no code writes to its elements. A slice that
/// [`View::into_slice`](crate::View::into_slice) returned keeps the view alive, and so does a container that owns the slice. While a
/// [`ViewMut`](crate::ViewMut) with this option lives, its elements are read and written only by Rust code through that view. This
/// holds for Rust code, Python code, other libraries and other threads. Other views with a promise are an exception, if they refer
/// to the elements by the same addresses: they are kept apart.
///
/// Nothing else is checked. The crate that promises, or its callers, must rule out:
///
/// | not detected | because |
/// |---|---|
/// | one file mapped twice (`np.memmap(file, mode="r+")`, `mmap`) | the same bytes have two addresses, so two arguments look like two arrays |
/// | a `SharedMemory` attached twice, or memory that was remapped (`mremap`, `memfd`) | the same bytes have two addresses |
/// | other processes that have the file or the memory | their addresses are unknown here |
/// | views without a promise that are [`MayOverlap`], or on another thread | they have no lease |
/// | rust-numpy's `PyReadonlyArray`, pybind11, Cython, NumPy itself | they do not use these leases |
///
/// If another extension module has leases of a form that this version does not know, a view with a promise is refused with a
/// `RuntimeError`.
pub unsafe trait Promise {}

pub(crate) mod sealed {
    pub trait InPlace {}

    pub trait Options {
        /// The elements are contiguous, in C order.
        const CONTIGUOUS: bool = false;
        /// The bytes of an array of any data type are viewed.
        const AS_BYTES: bool = false;
        /// An argument that does not fit is converted by `numpy.asarray`.
        const CONVERT: bool = false;
        /// The view is not checked for overlaps with other views of this thread.
        const MAY_OVERLAP: bool = false;
        /// The user promised that no other code accesses the memory.
        const PROMISE: bool = false;
        /// `PROMISE` as a type, for bounds: [`Yes`] or [`No`].
        type Promised: OrPromised;
    }

    /// The options contain a promise.
    #[derive(Debug)]
    pub struct Yes;

    /// The options contain no promise.
    #[derive(Debug)]
    pub struct No;

    pub trait IsPromised {}

    impl IsPromised for Yes {}

    /// Whether one of two options is a promise.
    pub trait OrPromised {
        type Or<Other: OrPromised>: OrPromised;
    }

    impl OrPromised for Yes {
        type Or<Other: OrPromised> = Self;
    }

    impl OrPromised for No {
        type Or<Other: OrPromised> = Other;
    }
}

impl sealed::Options for () {
    type Promised = No;
}

impl sealed::InPlace for () {}
impl sealed::InPlace for Contiguous {}
impl sealed::InPlace for AsBytes {}
impl sealed::InPlace for MayOverlap {}
#[diagnostic::do_not_recommend]
impl<P: Promise> sealed::InPlace for P {}

impl sealed::Options for Contiguous {
    const CONTIGUOUS: bool = true;
    type Promised = No;
}

impl sealed::Options for AsBytes {
    const CONTIGUOUS: bool = true;
    const AS_BYTES: bool = true;
    type Promised = No;
}

impl sealed::Options for Convert {
    const CONVERT: bool = true;
    type Promised = No;
}

impl sealed::Options for MayOverlap {
    const MAY_OVERLAP: bool = true;
    type Promised = No;
}

impl<P: Promise> sealed::Options for P {
    const PROMISE: bool = true;
    type Promised = Yes;
}

macro_rules! or_promised {
    ($last:ident) => { $last::Promised };
    ($first:ident $($rest:ident)+) => { <$first::Promised as OrPromised>::Or<or_promised!($($rest)+)> };
}

macro_rules! tuples {
    ($(($($option:ident)+);)+) => {$(
        impl<$($option: sealed::Options),+> sealed::Options for ($($option,)+) {
            const CONTIGUOUS: bool = false $(|| $option::CONTIGUOUS)+;
            const AS_BYTES: bool = false $(|| $option::AS_BYTES)+;
            const CONVERT: bool = false $(|| $option::CONVERT)+;
            const MAY_OVERLAP: bool = false $(|| $option::MAY_OVERLAP)+;
            const PROMISE: bool = false $(|| $option::PROMISE)+;
            type Promised = or_promised!($($option)+);
        }

        impl<$($option: sealed::InPlace),+> sealed::InPlace for ($($option,)+) {}
    )+};
}
tuples! {
    (A B);
    (A B C);
    (A B C D);
}
