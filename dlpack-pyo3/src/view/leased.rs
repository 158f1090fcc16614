//! How each of the views is made of an argument.
#![expect(unsafe_code, reason = "passes on the promise that the user gave")]

use core::marker::PhantomData;

use dlpack_core::array::{Rank, View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::{Element, Error, Managed};
use pyo3::prelude::*;

use crate::view::options::Options;
use crate::view::{lease::Lease, needs::Needs};

/// A view of core's, and what was asked of it.
pub(super) struct Leased<V, O> {
    pub(super) view: V,
    /// Given back behind the last use of the elements.
    #[expect(dead_code, reason = "held for its `Drop`")]
    lease: Option<Lease>,
    options: PhantomData<fn() -> O>,
}

/// One of the two views of core's.
pub(super) trait Kind: Sized {
    type Element: Plain;
    const RANK: Option<usize>;
    const WRITES: bool;

    #[expect(
        clippy::result_large_err,
        reason = "the tensor goes back to its caller"
    )]
    fn of(tensor: Managed) -> Result<Self, (Error, Managed)>;

    /// # Safety
    ///
    /// As that of core's.
    unsafe fn assume_unshared(self) -> Self;
}

macro_rules! kinds {
    ($($view:ident $writes:literal)*) => {$(
        impl<T: Plain, L: Rank> Kind for $view<T, L> {
            type Element = T;
            const RANK: Option<usize> = L::RANK;
            const WRITES: bool = $writes;

            #[inline]
            fn of(tensor: Managed) -> Result<Self, (Error, Managed)> {
                Self::try_new(tensor)
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
    View false
    ViewMut true
}

impl<V: Kind, O: Options> Leased<V, O> {
    const NEEDS: Needs = Needs {
        dtype: V::Element::DTYPE,
        rank: V::RANK,
        element: V::Element::TRAILING,
        contiguous: O::CONTIGUOUS,
        convert: O::CONVERT,
        cuda: false,
    };

    /// The view of an argument.
    pub(super) fn extract(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let needs = &const { Self::NEEDS };
        let (error, tensor) = match Self::of(needs.tensor(object)?) {
            Ok(view) => return Ok(view),
            Err(refused) => refused,
        };
        let tensor = needs.another(object, &error, &tensor.view())?;
        Self::of(tensor)
            .map_err(|(error, tensor)| needs.refusal(object.py(), &error, &tensor.view()))
    }

    /// The view of a tensor, or the tensor and why there is none.
    #[inline]
    #[expect(
        clippy::result_large_err,
        reason = "the tensor goes back to its caller"
    )]
    pub(super) fn of(tensor: Managed) -> Result<Self, (Error, Managed)> {
        if O::CONTIGUOUS && !tensor.view().is_contiguous() {
            return Err((tensor.view().not_contiguous(), tensor));
        }
        let lease = match O::PROMISE.then(|| Lease::take(&tensor.view(), V::WRITES)) {
            None => None,
            Some(Ok(lease)) => Some(lease),
            Some(Err(error)) => return Err((error, tensor)),
        };
        let mut view = V::of(tensor)?;
        if O::PROMISE {
            // SAFETY: what the user promised with `Promise`; from other views with a promise the lease keeps it apart, as
            // long as this one lives.
            view = unsafe { view.assume_unshared() };
        }
        Ok(Self {
            view,
            lease,
            options: PhantomData,
        })
    }
}
