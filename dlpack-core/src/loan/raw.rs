//! Loans from `unsafe(data = .., len = ..)`: an address that the user guarantees to be valid.
#![expect(unsafe_code, reason = "makes a loan of an address")]

use core::ptr::NonNull;

use crate::loan::{LentMemory, Loan, access::Access};
use crate::{Device, Element};

/// A type that `unsafe(data = .., len = ..)` accepts as an address.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the address of elements",
    label = "expected `*const T`, `*mut T` or `NonNull<T>`, where `T` is an element",
    note = "an untyped pointer needs a type: `pointer.cast::<f32>()`, or `pointer.cast::<u8>()` and a `dtype`"
)]
pub trait Address {
    /// The type of the elements.
    #[doc(hidden)]
    type Element: Element;
    /// Whether the memory may be written through the pointer.
    #[doc(hidden)]
    const WRITABLE: bool;
    /// Converts to a raw pointer.
    #[doc(hidden)]
    fn into_pointer(self) -> *mut Self::Element;
}

macro_rules! addresses {
    ($($pointer:ty, $writable:literal, $cast:expr;)*) => {$(
        impl<T: Element> Address for $pointer {
            type Element = T;
            const WRITABLE: bool = $writable;
            #[inline]
            fn into_pointer(self) -> *mut T {
                ($cast)(self)
            }
        }
    )*};
}
addresses! {
    *const T, false, <*const T>::cast_mut;
    *mut T, true, core::convert::identity;
    NonNull<T>, true, NonNull::as_ptr;
}

/// An address without a length, on the device that the annotation names.
#[derive(Debug)]
pub struct Start(LentMemory);

/// Wraps the address of `unsafe(data = ..)`.
#[inline]
pub fn address<A: Address>(address: A) -> Start {
    let access = if A::WRITABLE {
        Access::Shared
    } else {
        Access::Read
    };
    let mut memory = LentMemory::new(address.into_pointer().cast_const(), 0, Device::CPU, access);
    memory.any_device = true;
    Start(memory)
}

/// Lends `len` elements at an address.
///
/// # Safety
///
/// The contract of [`Loan::from_raw_parts`], or, for a `*mut T` or `NonNull<T>`, of [`Loan::from_raw_parts_mut`].
#[inline]
pub unsafe fn raw<'a>(start: Start, len: usize) -> Loan<'a> {
    let Start(mut memory) = start;
    memory.bytes = len.saturating_mul(memory.element);
    Loan::of_memory(memory)
}
