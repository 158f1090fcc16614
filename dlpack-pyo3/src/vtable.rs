//! [`Vtable`]: what differs between classes, as one table of constants and functions for each.
//!
//! For each class the compiler generates its table with [`export`], and the C functions that Python and consumers call, which only
//! pass the table on. Everything else is compiled once.
#![expect(unsafe_code, reason = "forgets the class of an object, for its table")]

use core::{hint::assert_unchecked, marker::PhantomData, ops::ControlFlow, ptr::NonNull};

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::binding::{self, Handover, hand_over, hand_over_plain, is_plain, share_root};
use dlpack_core::{DLPack, Descriptor, Error, ExportRequest, Managed};
use pyo3::{PyClass, ffi, impl_::pyclass::NoopThreadChecker, prelude::*};

use crate::error::{OrRaise, Raised, catch_panics, out_of_memory, raise_core_error_of};
use crate::handover::{ConsumerRequest, Outcome, root, unordered};
use crate::keepalive::{
    BorrowGuard, BorrowGuardOf, ContentsBorrow, ExportOwner, already_borrowed, borrow_contents,
    destructor,
};
use crate::lender::{Kept, Place, Source};

/// A class whose objects are tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exported from Python",
    label = "expected a `#[pyclass]` with `#[derive(DLPack)]` that is `Send` and `Sync`",
    note = "add `#[pyclass]` and `#[derive(DLPack)]` to it, and check that its fields are `Send` and `Sync`",
    note = "remove `unsendable`: a consumer may use and release the data on any thread",
    note = "a class with `tensor` or `columns` keys and no data of its own is not a tensor: remove `info` and `iterable`"
)]
pub trait Exports:
    DLPack + PyClass<Frozen: ContentsBorrow<Self>, ThreadChecker: AnyThread> + Sync
{
    /// Whether the types say that an export takes the exclusive borrow.
    #[doc(hidden)]
    const ALWAYS_EXCLUSIVE: bool = Self::EXTRAS.exclusive
        && Self::EXTRAS.facts.is_writable_alone()
        && Self::EXTRAS.share.is_none();
}

#[diagnostic::do_not_recommend]
impl<T: DLPack + PyClass<Frozen: ContentsBorrow<T>, ThreadChecker: AnyThread> + Sync> Exports
    for T
{
}

/// What PyO3 checks threads by: no class that is `unsendable`, whose objects panic on every thread but one. The one thing
/// about a class that says so.
pub trait AnyThread {}

impl AnyThread for NoopThreadChecker {}

/// What is compiled for a class. `G` is how its objects are borrowed.
pub(crate) struct Vtable<G> {
    /// The class in Python.
    pub(crate) name: &'static str,
    pub(crate) class: fn(Python<'_>) -> *mut ffi::PyTypeObject,
    pub(crate) export: Export,
    pub(crate) share: Borrow<G>,
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

/// Exports an object of the class: the function [`export`] of that class.
///
/// # Safety
///
/// The thread is attached, and the object is one of the class.
type Export = unsafe fn(*mut ffi::PyObject, ConsumerRequest<'_>, &mut Outcome) -> Exported;

/// What an object of some class holds.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a>(NonNull<()>, PhantomData<&'a ()>);

impl Contents<'_> {
    fn of<T>(value: impl Into<NonNull<T>>) -> Self {
        Self(value.into().cast(), PhantomData)
    }
}

/// A tensor in the struct of DLPack 1.0 and later, and the destructor for a capsule around it.
pub(crate) type Exported = Option<(NonNull<DLManagedTensorVersioned>, Destructor)>;

type Destructor = ffi::PyCapsule_Destructor;

impl<G: Send + 'static> Vtable<G> {
    /// The table of a class.
    #[inline(always)]
    pub(crate) const fn of<T: Exports>() -> &'static Self
    where
        T::Frozen: ContentsBorrow<T, BorrowGuard = G>,
    {
        const {
            &Self {
                name: <T as PyClass>::NAME,
                class: T::type_object_raw,
                export: export::<T>,
                share: |object| {
                    // SAFETY: passed on to the caller.
                    let object = unsafe { object.cast_unchecked::<T>() };
                    // SAFETY: passed on to the caller.
                    let (value, guard) = unsafe { borrow_contents(object) }?;
                    Ok((Contents::of(value), guard))
                },
                describe: |contents| {
                    // SAFETY: passed on to the caller.
                    unsafe { contents.0.cast::<T>().as_ref() }.describe()
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

/// Exports an object as a consumer requests it: borrows it, describes its contents, and hands them over together with what
/// keeps them in place. Compiled for each class; what it calls is compiled once per kind of borrow.
///
/// A tensor in a block of this crate is returned by address, as it then takes no move of a `Managed`. Any other result is stored
/// in `other`. With neither, an exception is set.
///
/// # Safety
///
/// The thread is attached, and the object is one of the class.
// XAP-10
pub(crate) unsafe fn export<T: Exports>(
    object: *mut ffi::PyObject,
    request: ConsumerRequest<'_>,
    other: &mut Outcome,
) -> Exported {
    // SAFETY: the caller passes an object of the class, which is not null.
    unsafe { assert_unchecked(!object.is_null()) };
    // SAFETY: the caller is attached.
    let py = unsafe { Python::assume_attached() };
    let mut export = || {
        // SAFETY: an object, which the caller keeps alive for the call.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: the caller vouches for its class.
        let object = unsafe { object.cast_unchecked::<T>() };
        if !T::ALWAYS_EXCLUSIVE {
            let shared = export_shared(&object, request, other);
            if let ControlFlow::Break(exported) = shared {
                return exported;
            }
        }
        if T::EXTRAS.exclusive {
            return export_exclusive(&object, request, other);
        }
        unreachable!("only an exclusive class skips the shared borrow, or does not end with it")
    };
    catch_panics(py, || Ok(export())).unwrap_or(None)
}

/// Exports an object under a shared borrow. `Continue` if it is read-only only because of the borrow: an exclusive
/// borrow makes it writable.
#[inline(always)]
fn export_shared<T: Exports>(
    object: &Bound<'_, T>,
    request: ConsumerRequest<'_>,
    other: &mut Outcome,
) -> ControlFlow<Exported> {
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    // SAFETY: the guard is dropped after `value` is last used, or goes into the owner together with the object.
    let Some((value, guard)) = (unsafe { T::Frozen::borrow_shared(object) }) else {
        already_borrowed(py, class, "mutably borrowed");
        return ControlFlow::Break(None);
    };
    let mut ordered = None;
    let sharing = request.for_sharing(T::EXTRAS.facts.is_on_host(), &mut ordered);
    if T::EXTRAS.share.is_some() {
        let mut shared = binding::Shared {
            // A lender keeps a `Managed`.
            by_address: !matches!(request, ConsumerRequest::Buffer),
            outcome: None,
        };
        if let Some(tensor) = binding::share(value, sharing, &mut shared) {
            let end = destructor::destroy_capsule::<false, false> as Destructor;
            return ControlFlow::Break(Some((tensor.into_raw(), end)));
        }
        if let Some(shared) = shared.outcome {
            return ControlFlow::Break(store(py, shared, other));
        }
    }
    let mut described = value.describe();
    if T::EXTRAS.exclusive && described.as_ref().is_ok_and(|it| it.is_read_only()) {
        return ControlFlow::Continue(());
    }
    let mut kept = object.as_any().as_borrowed();
    if let (true, Ok(descriptor)) = (T::EXTRAS.transparent, &mut described) {
        if let Some(root) = root::<BorrowGuardOf<T>>(object.as_any(), descriptor) {
            kept = root;
        } else if let Some(shared) = share_root(descriptor, sharing) {
            return ControlFlow::Break(store(py, shared, other));
        }
    }
    let owner = guard.into_owner(&kept);
    // SAFETY: the owner keeps the object alive and borrowed, and so the memory that is described.
    ControlFlow::Break(unsafe { hand_over_any(py, owner, class, &mut described, request, other) })
}

/// Exports an object under an exclusive borrow.
#[inline(always)]
fn export_exclusive<T: Exports>(
    object: &Bound<'_, T>,
    request: ConsumerRequest<'_>,
    other: &mut Outcome,
) -> Exported {
    // SAFETY: the guard goes into the owner together with the object.
    let (value, guard) = unsafe { T::Frozen::borrow_exclusive(object) }.ok()?;
    let owner = guard.into_owner(object.as_any());
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    let mut described = value.describe_mut();
    // SAFETY: the owner keeps the object alive and borrowed, and so the memory that is described.
    unsafe { hand_over_any(py, owner, class, &mut described, request, other) }
}

/// Hands over what was described, or raises why it could not be.
///
/// The fast path is inlined into each class's [`export`], where the descriptor need not be written to memory.
///
/// # Safety
///
/// The owner keeps the memory that is described until it is dropped.
#[inline(always)]
unsafe fn hand_over_any<O: ExportOwner>(
    py: Python<'_>,
    owner: O,
    class: &str,
    described: &mut Result<Descriptor<'_>, Error>,
    request: ConsumerRequest<'_>,
    other: &mut Outcome,
) -> Exported {
    if let (true, Ok(descriptor)) = (request.is_plain(), &mut *described) {
        if is_plain(descriptor) {
            // SAFETY: the caller vouches for the owner.
            return match unsafe { hand_over_plain(owner, descriptor) } {
                Ok(tensor) => Some((tensor, destructor::destroy_owned_capsule::<O> as Destructor)),
                Err(_) => {
                    out_of_memory();
                    None
                }
            };
        }
    }
    // SAFETY: the caller vouches for the owner.
    unsafe { hand_over_requested(py, owner, class, described, request, other) }
}

/// Stores a tensor, or raises why there is none.
#[inline(never)]
fn store(py: Python<'_>, tensor: Result<Managed, Error>, other: &mut Outcome) -> Exported {
    if let Ok(tensor) = tensor.or_raise(py) {
        *other = Outcome::Tensor(tensor);
    }
    None
}

/// Lends what was described by Python's buffer protocol.
#[cold]
#[inline(never)]
fn lend<O: ExportOwner>(py: Python<'_>, owner: O, descriptor: &Descriptor<'_>) -> Outcome {
    if !is_plain(descriptor) {
        return Outcome::NotLent;
    }
    match Place::new(py, &Source::of_descriptor(descriptor)) {
        Ok(place) => Outcome::Lender(place.put(Kept::Object(owner.into_any(py))).unbind()),
        Err(Raised) => Outcome::None,
    }
}

/// Hands over what was described as the request and the device demand: the path of copies, streams and re-exports.
///
/// # Safety
///
/// As [`hand_over_any`].
#[cold]
#[inline(never)]
unsafe fn hand_over_requested<O: ExportOwner>(
    py: Python<'_>,
    owner: O,
    class: &str,
    described: &mut Result<Descriptor<'_>, Error>,
    request: ConsumerRequest<'_>,
    other: &mut Outcome,
) -> Exported {
    let descriptor = match described {
        Ok(descriptor) => descriptor,
        Err(error) => {
            raise_core_error_of(py, class, error);
            return None;
        }
    };
    let made;
    let request = match request {
        ConsumerRequest::With(request) => request,
        ConsumerRequest::Buffer => {
            *other = lend(py, owner, descriptor);
            return None;
        }
        ConsumerRequest::Default => {
            made = ExportRequest::versioned();
            &made
        }
        ConsumerRequest::Unordered => {
            made = unordered(descriptor.device());
            &made
        }
    };
    // SAFETY: the caller vouches for the owner.
    let handed_over = unsafe { hand_over(|| owner, descriptor, request) };
    match handed_over.or_raise(py).ok()? {
        Handover::Kept(tensor) => Some((tensor, destructor::destroy_owned_capsule::<O>)),
        Handover::Other(tensor) => {
            *other = Outcome::Tensor(tensor);
            None
        }
    }
}
