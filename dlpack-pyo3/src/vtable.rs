//! [`Vtable`]: the constants and functions that differ between classes, as one table for each class.
//!
//! For each class the compiler generates its table with [`export`], and the C functions that Python and consumers call, which
//! only pass the table on. All other code is compiled once.
#![expect(unsafe_code, reason = "forgets the class of an object, for its table")]

use core::{hint::assert_unchecked, mem::ManuallyDrop, ops::ControlFlow, ptr::NonNull};

use dlpack_core::abi::DLManagedTensorVersioned;
use dlpack_core::binding::{
    self, Handover, Root, describe_export, hand_over, hand_over_plain, is_from_fast_path, is_plain,
    share_root, unordered_request, view,
};
use dlpack_core::{DLPack, Descriptor, Device, Error, ExportRequest, Managed};
use pyo3::{PyClass, ffi, impl_::pyclass::NoopThreadChecker, prelude::*};

use crate::error::{OrRaise, Raised, catch_panics, out_of_memory, raise_core_error_of};
use crate::handover::{ConsumerRequest, Outcome, find_root, find_root_of_export};
use crate::keepalive::{
    BorrowGuard, ContentsBorrow, ExportOwner, already_borrowed, attached::check_interpreter,
    borrow_contents, destructor,
};
use crate::lender::{MemoryOwner, UnfilledLender};

/// A class with objects that are exported as tensors.
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
    /// Whether the types imply that every export takes the exclusive borrow.
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

/// The thread checker of PyO3 for a class that is not `unsendable`. Objects of an `unsendable` class panic on every thread but
/// one, and the thread checker is the only property of a class that shows this.
pub trait AnyThread {}

impl AnyThread for NoopThreadChecker {}

/// The code that is compiled for a class.
pub(crate) struct Vtable {
    /// The name of the class in Python.
    pub(crate) name: &'static str,
    pub(crate) class: fn(Python<'_>) -> *mut ffi::PyTypeObject,
    pub(crate) export: Export,
    /// The device of an object, which the caller knows to be an instance of the class: the function [`find_device`], or the CPU if
    /// the types of the class imply that.
    pub(crate) device: unsafe fn(&Bound<'_, PyAny>) -> Result<Device, Raised>,
}

/// Exports an object of the class: the function [`export`] of that class.
///
/// # Safety
///
/// The thread is attached to the interpreter, and the object is an instance of the class.
type Export = unsafe fn(*mut ffi::PyObject, ConsumerRequest<'_>, &mut Outcome) -> Exported;

/// A tensor in the struct of DLPack 1.0 and later, and the destructor for a capsule around it.
pub(crate) type Exported = Option<(NonNull<DLManagedTensorVersioned>, Destructor)>;

type Destructor = ffi::PyCapsule_Destructor;

impl Vtable {
    /// The table of class `T`.
    #[inline(always)]
    pub(crate) const fn of<T: Exports>() -> &'static Self {
        const {
            &Self {
                name: <T as PyClass>::NAME,
                class: T::type_object_raw,
                export: export::<T>,
                device: const {
                    if T::EXTRAS.facts.is_on_host() {
                        |_| Ok(Device::CPU)
                    } else {
                        find_device::<T>
                    }
                },
            }
        }
    }

    /// Whether an object is an instance of the class.
    pub(crate) fn is_instance(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: `object` is a live object on an attached thread, and `class` returns a type object.
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), (self.class)(object.py())) != 0 }
    }
}

/// Describes an object to find the device of its memory.
///
/// # Safety
///
/// The object is an instance of the class.
unsafe fn find_device<T: Exports>(object: &Bound<'_, PyAny>) -> Result<Device, Raised> {
    // SAFETY: by this function's contract the object is a `T`.
    let object = unsafe { object.cast_unchecked::<T>() };
    // SAFETY: the guard outlives `value` and its description.
    let (value, _guard) = unsafe { borrow_contents(object) }?;
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    let described = value.describe();
    let described = described.map_err(|error| raise_core_error_of(py, class, &error))?;
    Ok(described.device())
}

/// Exports an object as a consumer requests it: borrows it, describes its contents, and hands them over with the owner that keeps
/// them in place. Compiled for each class; the functions that it calls are compiled once per kind of borrow.
///
/// A tensor in a block of this crate is returned by address, which saves a move of a `Managed`. Any other result is stored in
/// `outcome`. With neither, an exception is set.
///
/// # Safety
///
/// The thread is attached to the interpreter, and the object is an instance of the class.
// XAP-10
pub(crate) unsafe fn export<T: Exports>(
    object: *mut ffi::PyObject,
    request: ConsumerRequest<'_>,
    outcome: &mut Outcome,
) -> Exported {
    // SAFETY: by this function's contract `object` is an instance of the class, so it is not null.
    unsafe { assert_unchecked(!object.is_null()) };
    // SAFETY: by this function's contract the thread is attached.
    let py = unsafe { Python::assume_attached() };
    let mut export = || {
        // SAFETY: `object` is a Python object, and the caller keeps it alive for the call.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: by this function's contract the object is a `T`.
        let object = unsafe { object.cast_unchecked::<T>() };
        if const { !T::ALWAYS_EXCLUSIVE } {
            let shared = export_shared(&object, request, outcome);
            if let ControlFlow::Break(exported) = shared {
                return exported;
            }
        }
        if const { T::EXTRAS.exclusive } {
            return export_exclusive(&object, request, outcome);
        }
        unreachable!("only an exclusive class skips the shared borrow, or does not end with it")
    };
    let export = || check_interpreter(py).map(|()| export());
    catch_panics(py, export).unwrap_or(None)
}

/// Exports an object under a shared borrow. Returns `Continue` if the object is read-only only because of this borrow, and an
/// exclusive borrow makes it writable.
#[inline(always)]
fn export_shared<T: Exports>(
    object: &Bound<'_, T>,
    request: ConsumerRequest<'_>,
    outcome: &mut Outcome,
) -> ControlFlow<Exported> {
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    // SAFETY: the guard is dropped after the last use of `value`, or moves into the owner together with the object.
    let Some((value, guard)) = (unsafe { T::Frozen::borrow_shared(object) }) else {
        already_borrowed(py, class, "mutably borrowed");
        return ControlFlow::Break(None);
    };
    if let (true, Some(wrapped)) = const { (T::Frozen::FROZEN, T::EXTRAS.wrapped) } {
        if let (Some(tensor), true) = (wrapped(value), request.is_plain()) {
            // SAFETY: the class is frozen, so its objects keep their tensors.
            if let Some(exported) = unsafe { share_wrapped(object.as_any(), tensor) } {
                return ControlFlow::Break(exported);
            }
        }
    }
    let mut ordered = None;
    let sharing = request.for_sharing(T::EXTRAS.facts.is_on_host(), &mut ordered);
    if const { T::EXTRAS.share.is_some() } {
        let mut call = binding::ShareCall {
            // The lender of a buffer keeps a `Managed`.
            by_address: !matches!(request, ConsumerRequest::Buffer),
            outcome: None,
        };
        if let Some(tensor) = binding::share(value, sharing, &mut call) {
            let end = destructor::destroy_capsule::<false> as Destructor;
            return ControlFlow::Break(Some((tensor.into_raw(), end)));
        }
        if let Some(shared) = call.outcome {
            return ControlFlow::Break(store_tensor(py, class, shared, outcome));
        }
    }
    let mut described = value.describe();
    if const { T::EXTRAS.exclusive } && described.as_ref().is_ok_and(|it| it.is_read_only()) {
        return ControlFlow::Continue(());
    }
    if const { T::EXTRAS.wrapped.is_some() } {
        let export = RequestedExport {
            described: &mut described,
            class,
            request,
        };
        // SAFETY: the guard keeps the object borrowed.
        let exported = unsafe { export_transparent(object, guard, export, sharing, outcome) };
        return ControlFlow::Break(exported);
    }
    let owner = || guard.into_owner(object.as_any());
    // SAFETY: the owner keeps the object alive and borrowed, and so the described memory valid.
    ControlFlow::Break(unsafe {
        hand_over_described(py, owner, class, described, request, outcome)
    })
}

/// Fast path of [`export_transparent`]: shares the whole tensor that an object wraps, if this crate exported it. Returns `None` for
/// any other tensor.
///
/// # Safety
///
/// The object keeps the memory of the tensor.
#[inline(always)]
unsafe fn share_wrapped(object: &Bound<'_, PyAny>, tensor: &Managed) -> Option<Exported> {
    let mut descriptor = ManuallyDrop::new(describe_export(tensor)?);
    let kept = match find_root_of_export(tensor) {
        None => object.as_borrowed(),
        Some(Root::Owner(root)) => root.object(object.py()),
        Some(Root::Allocation) => return None,
    };
    let owner = ().into_owner(&kept);
    // SAFETY: the owner keeps the described memory valid: it keeps the object, or the object that has the memory.
    Some(unsafe { share_memory(owner, &mut descriptor) })
}

/// Exports an object that only passes on the memory of another tensor. The export then keeps what has that memory alive, so that repeated
/// exports and imports do not build a chain of objects.
///
/// # Safety
///
/// The guard borrows the contents of the object, which are described.
#[inline(always)]
unsafe fn export_transparent<T: Exports>(
    object: &Bound<'_, T>,
    guard: impl BorrowGuard,
    export: RequestedExport<'_, '_>,
    sharing: Option<&ExportRequest>,
    outcome: &mut Outcome,
) -> Exported {
    let py = object.py();
    let mut kept = object.as_any().as_borrowed();
    if let Ok(descriptor) = &mut *export.described {
        match find_root(descriptor) {
            // A guard borrows from the object, so the object itself must be kept alive unless its class is frozen.
            Some(Root::Owner(root)) if T::Frozen::FROZEN => kept = root.object(py),
            Some(Root::Allocation) => {
                if let Some(shared) = share_root(descriptor, sharing) {
                    return store_tensor(py, export.class, shared, outcome);
                }
            }
            _ => {}
        }
    }
    let owner = guard.into_owner(&kept);
    // SAFETY: the owner keeps the described memory valid. It keeps this object alive and borrowed, or it keeps the object that
    // `find_root` found, which has the memory.
    unsafe { hand_over_requested(py, owner, export, outcome) }
}

/// Exports an object under an exclusive borrow.
#[inline(always)]
fn export_exclusive<T: Exports>(
    object: &Bound<'_, T>,
    request: ConsumerRequest<'_>,
    outcome: &mut Outcome,
) -> Exported {
    // SAFETY: the guard moves into the owner together with the object.
    let (value, guard) = unsafe { T::Frozen::borrow_exclusive(object) }.ok()?;
    let owner = || guard.into_owner(object.as_any());
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    let described = value.describe_mut();
    // SAFETY: the owner keeps the object alive and borrowed, and so the described memory valid.
    unsafe { hand_over_described(py, owner, class, described, request, outcome) }
}

/// Hands over the described tensor, or raises the error of its description.
///
/// The fast path is inlined into each class's [`export`], where the compiler knows most fields of the descriptor. It uses the
/// descriptor in place. Moved into a variable, or dropped, the descriptor would be written to memory first.
///
/// # Safety
///
/// The value that `owner` returns keeps the described memory valid until it is dropped.
#[inline(always)]
unsafe fn hand_over_described<O: ExportOwner>(
    py: Python<'_>,
    owner: impl FnOnce() -> O,
    class: &str,
    described: Result<Descriptor<'_>, Error>,
    request: ConsumerRequest<'_>,
    outcome: &mut Outcome,
) -> Exported {
    let mut described = ManuallyDrop::new(described);
    if let Ok(descriptor) = &mut *described {
        if is_from_fast_path(descriptor) && request.is_plain() && is_plain(descriptor) {
            // The descriptor owns nothing, so it need not be dropped.
            // SAFETY: same contract as this function's.
            return unsafe { share_memory(owner(), descriptor) };
        }
    }
    // A variable of its own: the one above need not be in memory then.
    let mut described = ManuallyDrop::into_inner(described);
    let export = RequestedExport {
        described: &mut described,
        class,
        request,
    };
    // SAFETY: same contract as this function's.
    unsafe { hand_over_requested(py, owner(), export, outcome) }
}

/// Shares the memory of a tensor that [`is_plain`].
///
/// # Safety
///
/// The owner keeps the described memory valid until it is dropped.
#[inline(always)]
unsafe fn share_memory<O: ExportOwner>(owner: O, descriptor: &mut Descriptor<'_>) -> Exported {
    // SAFETY: same contract as this function's.
    match unsafe { hand_over_plain(owner, descriptor) } {
        Some(tensor) => Some((tensor, destructor::destroy_owned_capsule::<O> as Destructor)),
        None => {
            out_of_memory();
            None
        }
    }
}

/// A described tensor, and the request for it.
struct RequestedExport<'a, 'b> {
    described: &'a mut Result<Descriptor<'b>, Error>,
    class: &'a str,
    request: ConsumerRequest<'a>,
}

/// Stores a tensor in `outcome`, or raises its error.
#[inline(never)]
fn store_tensor(
    py: Python<'_>,
    class: &str,
    tensor: Result<Managed, Error>,
    outcome: &mut Outcome,
) -> Exported {
    match tensor {
        Ok(tensor) => *outcome = Outcome::Tensor(tensor),
        Err(error) => drop(raise_core_error_of(py, class, &error)),
    }
    None
}

/// Lends the described memory through the buffer protocol, and stores the object that lends it in `outcome`. If an exception is
/// set, `outcome` stays as it is: [`Outcome::None`].
#[inline(never)]
fn lend_memory<O: ExportOwner>(
    py: Python<'_>,
    owner: O,
    descriptor: &Descriptor<'_>,
    outcome: &mut Outcome,
) {
    if !is_plain(descriptor) {
        *outcome = Outcome::NotLent;
        return;
    }
    if let Ok(lender) = UnfilledLender::of_tensor(py, &view(descriptor)) {
        let owner = MemoryOwner::Object(owner.into_any(py));
        *outcome = Outcome::Lender(lender.fill_with(owner).unbind());
    }
}

/// Hands over the described tensor as the request and the device demand, or raises the error of its description. This is the path of
/// copies, streams, re-exports, and of descriptions that are not made on a fast path.
///
/// # Safety
///
/// The owner keeps the described memory valid until it is dropped.
#[inline(never)]
unsafe fn hand_over_requested<O: ExportOwner>(
    py: Python<'_>,
    owner: O,
    export: RequestedExport<'_, '_>,
    outcome: &mut Outcome,
) -> Exported {
    let descriptor = match export.described {
        Ok(descriptor) => descriptor,
        Err(error) => {
            raise_core_error_of(py, export.class, error);
            return None;
        }
    };
    if export.request.is_plain() && is_plain(descriptor) {
        // SAFETY: by this function's contract the owner keeps the described memory valid.
        return unsafe { share_memory(owner, descriptor) };
    }
    let made;
    let request = match export.request {
        ConsumerRequest::With(request) => request,
        ConsumerRequest::Buffer => {
            lend_memory(py, owner, descriptor, outcome);
            return None;
        }
        ConsumerRequest::Default => {
            made = ExportRequest::versioned();
            &made
        }
        ConsumerRequest::Unordered => {
            made = unordered_request(descriptor.device());
            &made
        }
    };
    // SAFETY: by this function's contract the owner keeps the described memory valid.
    let handed_over = unsafe { hand_over(|| owner, descriptor, request) };
    match handed_over.or_raise(py).ok()? {
        Handover::Kept(tensor) => Some((tensor, destructor::destroy_owned_capsule::<O>)),
        Handover::Other(tensor) => {
            *outcome = Outcome::Tensor(tensor);
            None
        }
    }
}
