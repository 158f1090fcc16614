//! How each of the views is made of an argument, and what keeps it apart from others.
//!
//! An array of NumPy's own is read where it lies. Where that gives no view, and for all other objects, there is a tensor, which
//! gives one or says why there is none.
#![expect(unsafe_code, reason = "passes on the promise that the user gave")]

use core::marker::PhantomData;

use dlpack_core::array::{ArrayElement, Rank, View, ViewMut};
use dlpack_core::binding::{Access, ByAccess, Found, Span, Strided, keep_strided};
use dlpack_core::element::{Plain, RecordLayout};
use dlpack_core::{Error, Managed};
use pyo3::prelude::*;

use crate::hold::HeldArray;
use crate::import::numpy;
use crate::view::options::Options;
use crate::view::{lease::Lease, live::Registration, needs::Needs};

/// What keeps the memory of a view.
pub(super) enum Keeper {
    Tensor(Managed),
    Numpy { array: HeldArray, read_only: bool },
}

// SAFETY: nothing can be done with the references to an array but to give them back, which takes the value.
unsafe impl Sync for Keeper {}

impl Keeper {
    /// The tensor, or one over the array that was described, which is refused as that of any other object.
    fn tensor(self, array: Option<Strided<'_>>) -> Result<Managed, Error> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            Self::Numpy {
                array: owner,
                read_only,
            } => {
                let array = Strided {
                    read_only,
                    ..array.expect("NumPy has no items that share bytes")
                };
                // SAFETY: as for the view, of which the references keep the memory too.
                unsafe { keep_strided(owner, |_| Ok(array), |error| error) }
            }
        }
    }
}

/// A view of core's, and what was asked of it.
pub(super) struct Leased<V, O> {
    pub(super) view: V,
    // Both are given back behind the last use of the elements.
    #[expect(dead_code, reason = "held for its `Drop`")]
    lease: Option<Lease>,
    #[expect(dead_code, reason = "held for its `Drop`")]
    registration: Registration,
    options: PhantomData<fn() -> O>,
}

/// What keeps a view apart from others.
type Apart = (Registration, Option<Lease>);

/// The array of which a view is made.
type FoundBy<V> = Found<<V as Kind>::Element, <V as Kind>::List>;

/// How its elements are read.
type AccessOf<V> = <<V as Kind>::Element as ArrayElement>::Access;

/// One of the two views of core's.
pub(super) trait Kind: Sized {
    type Element: ArrayElement;
    type List: Rank;
    const WRITES: bool;

    /// # Safety
    ///
    /// As that of [`Found::keep_mut`].
    unsafe fn keep(found: Found<Self::Element, Self::List>, keeper: Keeper) -> Self;

    /// # Safety
    ///
    /// As that of core's.
    unsafe fn assume_unshared(self) -> Self;
}

/// One of the two views, of what a tensor can hold.
pub(super) trait IntoManaged {
    fn into_managed(self) -> Result<Managed, Error>;
}

macro_rules! kinds {
    ($($view:ident $writes:literal $keep:ident)*) => {$(
        impl<T: Plain, L: Rank> IntoManaged for $view<T, L, Keeper> {
            fn into_managed(self) -> Result<Managed, Error> {
                self.into_tensor(Keeper::tensor)
            }
        }

        impl<T: ArrayElement, L: Rank> Kind for $view<T, L, Keeper> {
            type Element = T;
            type List = L;
            const WRITES: bool = $writes;

            #[inline(always)]
            unsafe fn keep(found: Found<T, L>, keeper: Keeper) -> Self {
                // SAFETY: the caller's promise.
                unsafe { found.$keep(keeper) }
            }

            #[inline]
            unsafe fn assume_unshared(self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { self.assume_unshared() }
            }
        }
    )*};
}
kinds! {
    View false keep
    ViewMut true keep_mut
}

/// The view of an argument, which is another thing for numbers and for records.
struct Extract<'a, 'py, V, O>(&'a Bound<'py, PyAny>, PhantomData<(V, O)>);

impl<V: Kind, O: Options> ByAccess<V::Element> for Extract<'_, '_, V, O> {
    type Output = PyResult<Leased<V, O>>;

    #[inline(always)]
    fn plain(self) -> Self::Output
    where
        V::Element: Plain,
    {
        match Leased::of_numpy(self.0) {
            Some(view) => Ok(view),
            None => Leased::of_any(self.0),
        }
    }

    #[inline(always)]
    fn records(self, layout: &'static RecordLayout) -> Self::Output {
        Leased::of_records(self.0, layout)
    }
}

impl<V: Kind, O: Options> Leased<V, O> {
    const NEEDS: Needs = Needs {
        dtype: AccessOf::<V>::DTYPE,
        rank: V::List::RANK,
        element: AccessOf::<V>::TRAILING,
        contiguous: O::CONTIGUOUS,
        convert: O::CONVERT,
        promise: O::PROMISE,
        cuda: false,
    };

    /// The view of an argument.
    #[inline]
    pub(super) fn extract(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        AccessOf::<V>::choose(Extract(object, PhantomData))
    }

    /// The view of an array of NumPy's own that needs no other look.
    #[inline(always)]
    fn of_numpy(object: &Bound<'_, PyAny>) -> Option<Self> {
        let array = numpy::described(object)?;
        let found = Found::of_strided(&array, V::WRITES)?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            return None;
        }
        let read_only = array.read_only;
        // Before anything runs that may run code of Python's.
        let array = numpy::keep(object)?;
        let apart = Self::keep_apart(found.span()).ok()?;
        let keeper = Keeper::Numpy { array, read_only };
        // SAFETY: references to the array that keeps the memory. What else writes there is Python's.
        Some(unsafe { Self::kept(found, keeper, apart) })
    }

    /// The view of the tensor of an argument.
    #[inline(never)]
    fn of_any(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let needs = &const { Self::NEEDS };
        let tensor = needs.tensor(object)?;
        match Self::find(&tensor) {
            // SAFETY: it is the tensor in which it was found.
            Ok((found, apart)) => Ok(unsafe { Self::kept(found, Keeper::Tensor(tensor), apart) }),
            Err(error) => Self::of_another(object, &error, &tensor),
        }
    }

    /// The view of what an argument is converted to, after its tensor was refused.
    #[cold]
    fn of_another(object: &Bound<'_, PyAny>, error: &Error, tensor: &Managed) -> PyResult<Self> {
        let needs = &const { Self::NEEDS };
        let tensor = needs.another(object, error, &tensor.view())?;
        Self::of(tensor)
            .map_err(|(error, tensor)| needs.refusal(object.py(), &error, &tensor.view()))
    }

    /// Keeps a view apart from others: for its numbers from those of this thread, and for its promise from those of all
    /// threads and modules. Where it is refused, nothing is kept.
    #[inline(always)]
    pub(super) fn keep_apart(span: &Span) -> Result<Apart, Error> {
        let registration = if O::MAY_OVERLAP {
            Registration::NONE
        } else {
            Registration::of(span, V::WRITES)?
        };
        let lease = if O::PROMISE {
            Some(Lease::take(span, V::WRITES)?)
        } else {
            None
        };
        Ok((registration, lease))
    }

    /// The array that a tensor is, and what keeps it apart from others.
    #[inline(always)]
    fn find(tensor: &Managed) -> Result<(FoundBy<V>, Apart), Error> {
        let found = Found::of_tensor(tensor, V::WRITES)?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            return Err(tensor.view().not_contiguous());
        }
        let apart = Self::keep_apart(found.span())?;
        Ok((found, apart))
    }

    /// The view of a tensor, or the tensor and why there is none.
    #[expect(
        clippy::result_large_err,
        reason = "the tensor goes back to its caller"
    )]
    pub(super) fn of(tensor: Managed) -> Result<Self, (Error, Managed)> {
        match Self::find(&tensor) {
            // SAFETY: it is the tensor in which it was found.
            Ok((found, apart)) => Ok(unsafe { Self::kept(found, Keeper::Tensor(tensor), apart) }),
            Err(error) => Err((error, tensor)),
        }
    }

    /// # Safety
    ///
    /// The keeper keeps what was found.
    #[inline(always)]
    pub(super) unsafe fn kept(
        found: FoundBy<V>,
        keeper: Keeper,
        (registration, lease): Apart,
    ) -> Self {
        // SAFETY: the caller's promise; it was found to be written if this kind does.
        let mut view = unsafe { V::keep(found, keeper) };
        if O::PROMISE {
            // SAFETY: what the user promised with `Promise`; from other views with a promise the lease keeps it apart, as
            // long as this one lives.
            view = unsafe { view.assume_unshared() };
        }
        Self {
            view,
            lease,
            registration,
            options: PhantomData,
        }
    }

    /// The tensor. Others may write to it again, whatever was promised of the view.
    pub(super) fn into_managed(self) -> Result<Managed, Error>
    where
        V: IntoManaged,
    {
        self.view.into_managed()
    }
}
