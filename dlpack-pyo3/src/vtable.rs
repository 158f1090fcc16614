//! [`Vtable`]: what differs between classes, as one table of constants and functions for each.
//!
//! All that the compiler makes anew for a class is what stands in its table, and the C functions by which Python and
//! consumers reach it, which do no more than pass the table on. What they pass it to is compiled once.
#![expect(unsafe_code, reason = "forgets the class of an object, for its table")]

use core::{hint::assert_unchecked, marker::PhantomData, panic::AssertUnwindSafe, ptr::NonNull};
use std::panic::catch_unwind;

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::binding::{self, hand_over_usual};
use dlpack_core::{DLPack, Descriptor, Error, ExportRequest, Managed};
use pyo3::{PyClass, ffi, impl_::pyclass::NoopThreadChecker, prelude::*};

use crate::error::{Raised, forget_panic};
use crate::hold::{Borrowing, Guard, ending, share};

/// A class whose objects are tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exported from Python",
    label = "the class has `#[dlpack_pymethods]`, but is no tensor that any thread may read",
    note = "add `#[derive(DLPack)]` to it, and see that its fields are `Send` and `Sync`",
    note = "a class that is `unsendable` cannot be: a consumer may use and release its data on any thread; remove the word",
    note = "a class with `tensor` or `columns` keys and no data of its own is no tensor: `info` and `iterable` are not for it"
)]
pub trait Exports:
    DLPack + PyClass<Frozen: Borrowing<Self>, ThreadChecker: AnyThread> + Sync
{
    /// Whether the types say that an export takes the exclusive borrow.
    #[doc(hidden)]
    const ALWAYS_EXCLUSIVE: bool = Self::EXTRAS.exclusive
        && Self::EXTRAS.facts.is_writable_alone()
        && Self::EXTRAS.share.is_none();

    /// Whether there is a short way to a tensor.
    #[doc(hidden)]
    const HAS_SHORT_WAY: bool = if Self::EXTRAS.exclusive {
        Self::ALWAYS_EXCLUSIVE && Self::EXTRAS.usual_mut.is_some()
    } else {
        Self::EXTRAS.usual.is_some() || Self::EXTRAS.share_usual.is_some()
    };
}

#[diagnostic::do_not_recommend]
impl<T: DLPack + PyClass<Frozen: Borrowing<T>, ThreadChecker: AnyThread> + Sync> Exports for T {}

/// What PyO3 checks threads by: no class that is `unsendable`, whose objects panic on every thread but one. The one thing
/// about a class that says so.
pub trait AnyThread {}

impl AnyThread for NoopThreadChecker {}

/// What is compiled for a class. `G` is how its objects are borrowed.
pub(crate) struct Vtable<G> {
    /// The class in Python.
    pub(crate) name: &'static str,
    pub(crate) class: fn(Python<'_>) -> *mut ffi::PyTypeObject,
    /// The short way to a tensor for a consumer that asks for nothing in particular.
    pub(crate) usual: unsafe fn(*mut ffi::PyObject) -> Usual,
    /// Ends a capsule around what that gives.
    pub(crate) end: ffi::PyCapsule_Destructor,
    pub(crate) share: Borrow<G>,
    pub(crate) describe: Describe,
    /// The object is a tensor of somebody else and nothing besides.
    pub(crate) transparent: bool,
    /// Where consumers may write.
    pub(crate) exclusive: Option<Exclusive<G>>,
    /// Exports what a field keeps by itself, where the key `owner` says so.
    pub(crate) share_field: Option<ShareField>,
}

/// The same for a class whose objects consumers may write.
pub(crate) struct Exclusive<G> {
    /// Whether the types say that it takes this borrow. Otherwise it does where the shared one gives data that is
    /// read-only, which that of a `SharedBuffer` is not.
    pub(crate) always: bool,
    pub(crate) exclude: Borrow<G>,
    pub(crate) describe: Describe,
}

/// Borrows an object of the class.
///
/// # Safety
///
/// The object is one of the class. Its contents are not used after the guard or the object is dropped.
type Borrow<G> = for<'a> unsafe fn(&'a Bound<'_, PyAny>) -> Result<(Contents<'a>, G), Raised>;

/// Describes the contents of an object of the class.
///
/// # Safety
///
/// They are those of such an object, borrowed as [`Borrow`] beside it borrows.
type Describe = for<'a> unsafe fn(Contents<'a>) -> Result<Descriptor<'a>, Error>;

/// # Safety
///
/// As [`Describe`].
type ShareField =
    for<'a> unsafe fn(Contents<'a>, Option<&ExportRequest>) -> Option<Result<Managed, Error>>;

/// What an object of some class holds.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a>(NonNull<()>, PhantomData<&'a ()>);

impl Contents<'_> {
    fn of<T>(value: impl Into<NonNull<T>>) -> Self {
        Self(value.into().cast(), PhantomData)
    }
}

/// A tensor, which a capsule may be made around with the destructor of its class; nothing where it is unusual or something is
/// wrong, which the long way finds out.
pub(crate) type Usual = Option<NonNull<DLManagedTensorVersioned>>;

/// What keeps an object that is so borrowed.
type OwnerOf<G> = <G as Guard>::Owner;

impl<G: Send + 'static> Vtable<G> {
    /// The table of a class.
    #[inline(always)]
    pub(crate) const fn of<T: Exports>() -> &'static Self
    where
        T::Frozen: Borrowing<T, Guard = G>,
    {
        const {
            &Self {
                name: <T as PyClass>::NAME,
                class: T::type_object_raw,
                usual: usual::<T>,
                end: if T::EXTRAS.exclusive {
                    ending::release::<OwnerOf<<T::Frozen as Borrowing<T>>::Writer>>
                } else if T::EXTRAS.share_usual.is_some() {
                    ending::delete_other::<false, false>
                } else {
                    ending::release::<OwnerOf<<T::Frozen as Borrowing<T>>::Reader>>
                },
                share: |object| {
                    // SAFETY: passed on to the caller.
                    let object = unsafe { object.cast_unchecked::<T>() };
                    // SAFETY: passed on to the caller.
                    let (value, guard) = unsafe { share(object) }?;
                    Ok((Contents::of(value), guard))
                },
                describe: |contents| {
                    // SAFETY: passed on to the caller.
                    unsafe { contents.0.cast::<T>().as_ref() }.describe()
                },
                transparent: T::EXTRAS.transparent,
                exclusive: if T::EXTRAS.exclusive {
                    Some(Exclusive {
                        always: T::ALWAYS_EXCLUSIVE,
                        exclude: |object| {
                            // SAFETY: passed on to the caller.
                            let object = unsafe { object.cast_unchecked::<T>() };
                            // SAFETY: passed on to the caller.
                            let (value, guard) = unsafe { T::Frozen::exclude(object) }?;
                            Ok((Contents::of(value), guard.into()))
                        },
                        describe: |contents| {
                            // SAFETY: passed on to the caller.
                            unsafe { contents.0.cast::<T>().as_mut() }.describe_mut()
                        },
                    })
                } else {
                    None
                },
                share_field: if T::EXTRAS.share.is_some() {
                    Some(|contents, request| {
                        // SAFETY: passed on to the caller.
                        binding::share(unsafe { contents.0.cast::<T>().as_ref() }, request)
                    })
                } else {
                    None
                },
            }
        }
    }

    /// Whether an object is one of the class.
    pub(crate) fn has(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: an object, and a class.
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), (self.class)(object.py())) != 0 }
    }
}

/// Exports an object as it is, if it is of the usual kind. That is all that most calls execute, so it is compiled for
/// each class in one piece.
///
/// # Safety
///
/// The thread is attached, and the object is one of the class.
#[inline(never)]
pub(crate) unsafe fn usual<T: Exports>(object: *mut ffi::PyObject) -> Usual {
    if !T::HAS_SHORT_WAY {
        return None;
    }
    // SAFETY: passed on to the caller.
    unsafe { assert_unchecked(!object.is_null()) };
    // SAFETY: passed on to the caller.
    let py = unsafe { Python::assume_attached() };
    let axes = const { T::EXTRAS.facts.axes() };
    let export = || {
        // SAFETY: an object, which the caller keeps.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: of this class, by the caller's contract.
        let object = unsafe { object.cast_unchecked::<T>() };
        if T::EXTRAS.exclusive {
            // SAFETY: the guard is dropped last here, or goes into the owner together with the object.
            let exclusive = unsafe { T::Frozen::exclude(&object) };
            let (value, guard) = exclusive.map_err(|raised| raised.forget(py)).ok()?;
            let owner = guard.keep(object.as_any());
            let usual = || T::EXTRAS.usual_mut.and_then(move |usual| usual(value));
            // SAFETY: as below.
            return unsafe { hand_over_usual(owner, axes, usual) };
        }
        // SAFETY: the guard is dropped last here, or goes into the owner together with the object.
        let (value, guard) = unsafe { T::Frozen::share(&object) }?;
        if let Some(share) = const { T::EXTRAS.share_usual } {
            return share(value).map(Managed::into_raw);
        }
        let owner = guard.keep(object.as_any());
        // SAFETY: the owner keeps the object, and what is described borrowed.
        unsafe { hand_over_usual(owner, axes, || binding::usual(value)) }
    };
    catch_unwind(AssertUnwindSafe(export)).unwrap_or_else(|payload| {
        // On the long way it panics again.
        forget_panic(payload);
        None
    })
}
