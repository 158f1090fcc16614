//! What a view may ask beside type and rank.
#![expect(unsafe_code, reason = "a promise is an unsafe trait")]

/// What a [`View`](crate::View) asks beside type and rank: nothing (`()`), [`Contiguous`], [`Convert`], [`MayOverlap`], a
/// [`Promise`], or a tuple of these.
pub trait Options: sealed::Options {}

impl<O: sealed::Options> Options for O {}

/// Options of an array that is written in place: all but [`Convert`], as what is written to a copy is lost.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no option of an array that is written",
    label = "expected `Contiguous`, `MayOverlap`, a type of yours with a `Promise`, or a tuple of these",
    note = "`Convert` makes a copy, and what is written to that would be lost: take a `View`, and return what you make of it"
)]
pub trait InPlace: Options + sealed::InPlace {}

#[diagnostic::do_not_recommend]
impl<O: Options + sealed::InPlace> InPlace for O {}

/// The elements have to lie one after another, the last axis fastest.
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

/// What is no such array is made one: a list, a number, an array of another type. NumPy does it
/// (`numpy.asarray(x, dtype)`), with a copy, and cuts off fractions where integers are needed.
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
#[derive(Debug)]
pub struct Convert;

/// The array may share memory with other arguments, although one of them is written; or the view is kept.
///
/// Without this option a view is refused that overlaps another view on the same thread, if one of the two writes. A call gets
/// its arguments on one thread, so `axpy(2.0, x[::-1], x)` is a `TypeError`, and not a wrong result: the loop would read
/// elements that it has already written. Two arrays that are only read may always overlap, and what lies between the
/// elements of the other, as the columns of a matrix do, does not overlap. It is enough that one of the two views has the option.
///
/// | take it where | because |
/// |---|---|
/// | the result is right in spite of it: each element is read before it is written, and not again | `add_to(x, x)` is then what the caller means |
/// | a view is kept in a struct | the check holds as long as the view lives, so nothing could be written to that array on this thread by a view |
///
/// It says nothing of soundness: views without a [`Promise`] never need it, and those with one are kept apart all the same.
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
/// /// Sees what others write to its weights, and does not hinder them.
/// #[pyclass(frozen)]
/// struct Model {
///     weights: View<f64, 2, MayOverlap>,
/// }
/// ```
#[derive(Debug)]
pub struct MayOverlap;

#[diagnostic::on_unimplemented(
    message = "`{Self}` is no option of a view",
    label = "expected `Contiguous`, `Convert`, `MayOverlap`, a type of yours with a `Promise`, or a tuple of these",
    note = "with `unsafe impl dlpack_pyo3::view::Promise for {Self} {{}}` you promise that nobody else writes; its documentation says more"
)]
/// A promise that your crate gives once, on a type of its own: nobody writes to the arrays of its views while these live,
/// and to those that it writes nobody else has access.
///
/// Then `as_slice`, `as_mut_slice`, `as_ndarray` and the like work for every argument, and all reading is as fast as that of
/// a slice. Two views with a promise over the same memory, one of which is a [`ViewMut`](crate::ViewMut), are refused when
/// the second is made, in whichever extension module, interpreter or thread. That one function gets the same array twice is no
/// reason not to give it, then.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{ViewMut, View, view::Promise};
/// use pyo3::prelude::*;
///
/// /// The functions of this module hold the GIL, keep no views, and call no Python.
/// struct Undisturbed;
/// // SAFETY: so no Python code runs while they do. Other threads that write without the GIL are documented to be an error.
/// unsafe impl Promise for Undisturbed {}
///
/// #[pyfunction]
/// fn sort(mut values: ViewMut<f64, 1, Undisturbed>) -> PyResult<()> {
///     values.as_mut_slice()?.sort_by(f64::total_cmp);
///     Ok(())
/// }
/// ```
///
/// # Safety
///
/// While a [`View`](crate::View) with this option lives, nobody writes to its elements, but Rust code through that view; while
/// a [`ViewMut`](crate::ViewMut) does, nobody else reads them either. Nobody is Rust code, Python code, other libraries, other
/// threads. Other views with a promise need not be thought of, if they name the elements by the same addresses: they are kept
/// apart.
///
/// That is all that is checked. These have to be ruled out by who promises, or by who calls:
///
/// | not detected | because |
/// |---|---|
/// | one file mapped twice (`np.memmap(file, mode="r+")`, `mmap`) | the same bytes have two addresses, so two arguments look like two arrays |
/// | a `SharedMemory` attached twice, or memory that was remapped (`mremap`, `memfd`) | as above |
/// | other processes that have the file or the memory | no address of theirs is known here |
/// | views without a promise that are [`MayOverlap`], or on another thread | they have no lease |
/// | rust-numpy's `PyReadonlyArray`, pybind11, Cython, NumPy itself | they know nothing of these leases |
///
/// Where another extension module has leases of a form that this version does not know, a view with a promise is refused with a
/// `RuntimeError`.
pub unsafe trait Promise {}

pub(crate) mod sealed {
    pub trait InPlace {}

    pub trait Options {
        /// Elements one after another.
        const CONTIGUOUS: bool = false;
        /// What does not fit goes through `numpy.asarray`.
        const CONVERT: bool = false;
        /// Views of this thread are not searched for one that overlaps it.
        const MAY_OVERLAP: bool = false;
        /// Somebody promised that nobody else has the memory.
        const PROMISE: bool = false;
    }
}

impl sealed::Options for () {}
impl sealed::InPlace for () {}
impl sealed::InPlace for Contiguous {}
impl sealed::InPlace for MayOverlap {}
#[diagnostic::do_not_recommend]
impl<P: Promise> sealed::InPlace for P {}

impl sealed::Options for Contiguous {
    const CONTIGUOUS: bool = true;
}

impl sealed::Options for Convert {
    const CONVERT: bool = true;
}

impl sealed::Options for MayOverlap {
    const MAY_OVERLAP: bool = true;
}

impl<P: Promise> sealed::Options for P {
    const PROMISE: bool = true;
}

macro_rules! tuples {
    ($(($($option:ident)+);)+) => {$(
        impl<$($option: sealed::Options),+> sealed::Options for ($($option,)+) {
            const CONTIGUOUS: bool = false $(|| $option::CONTIGUOUS)+;
            const CONVERT: bool = false $(|| $option::CONVERT)+;
            const MAY_OVERLAP: bool = false $(|| $option::MAY_OVERLAP)+;
            const PROMISE: bool = false $(|| $option::PROMISE)+;
        }

        impl<$($option: sealed::InPlace),+> sealed::InPlace for ($($option,)+) {}
    )+};
}
tuples! {
    (A B);
    (A B C);
    (A B C D);
}
