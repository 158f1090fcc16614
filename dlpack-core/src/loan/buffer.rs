//! The safe trait [`Buffer`]: a value that lends its elements to a tensor; and the expressions that can be lent.
//!
//! # Why `Buffer` is safe to implement
//!
//! A consumer keeps a raw pointer until it calls the deleter, so the memory must stay in place and readable for that long. An
//! implementation of `Buffer` is not trusted for any of this:
//!
//! 1. `lend` turns a `&'a self` into a `Loan<'a>`, and safe code can make a `Loan<'a>` only from a `&'a [T]`. So whatever
//!    `lend` does, the memory is valid for as long as `self` stays borrowed.
//! 2. An export keeps the owner borrowed until the deleter has run. The owner is either moved into a heap block that no other
//!    code can reach, or is a clone of an `Arc`, which gives out only `&T` while that clone lives. Both are `'static`, so
//!    nothing that they borrow ends earlier.
//! 3. Writing requires a `LoanMut<'a>`, which safe code can make only from a `&'a mut [T]`. The owner that lent it stays
//!    exclusively borrowed by the same argument.
//! 4. The consumer may be on any thread. Owners are `Send` (and `Sync` if shared), and elements are both.
//!
//! All other constructors of a loan are `unsafe`, and their contracts require the same properties.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use crate::loan::{Loan, LoanMut, facts::Facts};
use crate::{Element, element::AnyBits};

/// A container that can lend its elements to a tensor.
///
/// Implemented for arrays, slices, `Vec<T>`, [`SharedBuffer<T>`](crate::SharedBuffer), for `Box<B>` and `Arc<B>` of these, and,
/// with the feature of that name, for the containers of `ndarray`, `nalgebra` and `image`. The derive also accepts a field that
/// only dereferences to `[T]`, such as `Bytes` or a memory map. An implementation for another container is one line of safe
/// code; the head of this module's source explains why that is sound.
///
/// ```
/// #![forbid(unsafe_code)]
/// use dlpack_core::{Buffer, DLPack, Loan, LoanMut, Writable};
///
/// struct Ring { slots: Box<[u16]> }
///
/// impl Buffer for Ring {
///     fn lend(&self) -> Loan<'_> {
///         Loan::from(&self.slots[..])
///     }
///
///     // Only if an export that owns the ring may be written to.
///     fn lend_mut(&mut self) -> LoanMut<'_> {
///         LoanMut::from(&mut self.slots[..])
///     }
/// }
///
/// // Allows `#[dlpack(data, writable)]` on a field of this type.
/// impl Writable for Ring {}
///
/// let ring = Ring { slots: Box::new([1, 2, 3]) };
/// assert_eq!(ring.into_dlpack()?.view().shape(), [3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot back a DLPack tensor",
    label = "`{Self}` does not lend its elements",
    note = "use `Vec<T>`, `Box<[T]>` or `Arc<[T]>`, name a slice on the struct (`#[dlpack(data = &self.field[..])]`), or implement `Buffer`; a struct of your own becomes a tensor with `#[derive(DLPack)]`, and is exported from inside an `Arc` with `#[dlpack(via = self.field.to_dlpack()?)]`",
    note = "a container of `ndarray`, `nalgebra`, `image` or `cudarc` needs the feature of that name, and the version of the crate that is re-exported, such as `dlpack_core::ndarray`",
    note = "behind a lock or a cell (`Mutex<Vec<T>>`, `RefCell<Vec<T>>`) elements can move while they are read: use `SharedBuffer<T>`, or export a copy with `#[dlpack(via = ..)]`"
)]
pub trait Buffer: Send // a consumer may run the deleter on any thread
{
    /// The properties of the tensor that are known at compile time; see [`assert_exports!`](crate::assert_exports).
    #[doc(hidden)]
    const FACTS: Facts = Facts::UNKNOWN;

    /// Whether the value is a handle to a shared allocation and nothing else, so that an export keeps the allocation instead.
    #[doc(hidden)]
    const IS_ALLOCATION: bool = false;

    /// Lends the memory for as long as `self` stays borrowed.
    fn lend(&self) -> Loan<'_>;

    /// Lends the memory for writing, for as long as `self` stays exclusively borrowed. By default the loan of `lend`, which
    /// usually permits only reading.
    #[inline]
    fn lend_mut(&mut self) -> LoanMut<'_> {
        LoanMut::from(self.lend())
    }
}

/// A [`Buffer`] that permits writing through `lend_mut`. The key `writable` requires it.
///
/// ```
/// fn is_writable<B: dlpack_core::Writable>() {}
///
/// is_writable::<Vec<f32>>();
/// is_writable::<Box<[u8]>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exported as writable",
    label = "others may read `{Self}` while a consumer writes",
    note = "use a type that owns its elements exclusively (`Vec<T>`, `Box<[T]>`), or `SharedBuffer<T>`, or drop `writable`"
)]
pub trait Writable: Buffer {}

/// Implements the traits for lists of elements, which may be written through an exclusive reference.
macro_rules! lists {
    ($([$($length:tt)*] $list:ty;)*) => {$(
        impl<T: Element, $($length)*> Buffer for $list {
            const FACTS: Facts = Facts::list::<T>().writable_alone();

            #[inline]
            fn lend(&self) -> Loan<'_> {
                Loan::from(&self[..])
            }

            #[inline]
            fn lend_mut(&mut self) -> LoanMut<'_> {
                LoanMut::from(&mut self[..])
            }
        }

        impl<T: AnyBits, $($length)*> Writable for $list {}
    )*};
}
lists! {
    [] [T];
    [const N: usize] [T; N];
    [] Vec<T>;
}

/// Implements `Buffer` for handles to a buffer that other code may hold too.
macro_rules! handles {
    ($($handle:ty;)*) => {$(
        impl<B: Buffer + Sync + ?Sized> Buffer for $handle {
            const FACTS: Facts = B::FACTS.shared();
            const IS_ALLOCATION: bool = B::IS_ALLOCATION;

            #[inline]
            fn lend(&self) -> Loan<'_> {
                (**self).lend()
            }
        }
    )*};
}
handles! {
    &B;
    Arc<B>;
}

impl<B: Buffer + ?Sized> Buffer for Box<B> {
    const FACTS: Facts = B::FACTS;
    const IS_ALLOCATION: bool = B::IS_ALLOCATION;

    #[inline]
    fn lend(&self) -> Loan<'_> {
        (**self).lend()
    }

    #[inline]
    fn lend_mut(&mut self) -> LoanMut<'_> {
        (**self).lend_mut()
    }
}
impl<B: Writable + ?Sized> Writable for Box<B> {}

/// A value to which the expression after `data =` may evaluate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not lend elements",
    label = "expected `&[T]`, or a reference to a buffer such as `&Vec<T>`",
    note = "borrow a slice, `data = &self.field[..]`, or a buffer of this crate, `data = &self.field`"
)]
pub trait Lent<'a> {
    /// The properties of the tensor that are known at compile time.
    const FACTS: Facts = Facts::UNKNOWN;
    /// Converts the value to a loan.
    fn loan(self) -> Loan<'a>;
}

impl<'a, B: Buffer + ?Sized> Lent<'a> for &'a B {
    const FACTS: Facts = B::FACTS.shared();

    #[inline]
    fn loan(self) -> Loan<'a> {
        self.lend()
    }
}

impl<'a> Lent<'a> for Loan<'a> {
    #[inline]
    fn loan(self) -> Loan<'a> {
        self
    }
}
