//! From an object to a tensor that holds it: what `__dlpack__` and the exchange table share.
#![expect(
    unsafe_code,
    reason = "describes what a borrow keeps in place, and hands both to C"
)]

pub(crate) mod arguments;
pub(crate) mod buffer;
pub(crate) mod capsule;
pub(crate) mod method;

use core::ptr::NonNull;

use dlpack_core::binding::{
    Handover, UsualHandover, hand_over, hand_over_usual, share, unordered as unordered_stream,
    usual,
};
use dlpack_core::{DLPack, Descriptor, Device, Error, ExportRequest, Managed};
use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::{OrRaise, Raised, py_err, refuse};
use crate::hold::waiting::while_attached;
use crate::hold::{borrowing::Borrowing, held::Held};

/// A class whose objects are tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exported from Python",
    label = "the class has `#[dlpack_pymethods]`, but is no tensor that any thread may read",
    note = "add `#[derive(DLPack)]` to it, and see that its fields are `Send` and `Sync`",
    note = "a class with `tensor` or `columns` keys and no data of its own takes `#[dlpack_pymethods(tensors)]`"
)]
pub trait Exports: DLPack + PyClass<Frozen: Borrowing<Self>> + Sync {}

#[diagnostic::do_not_recommend]
impl<T: DLPack + PyClass<Frozen: Borrowing<T>> + Sync> Exports for T {}

/// What is done with an export once it is known who keeps it.
pub(crate) trait Sink {
    type Output;

    /// Whether the order of work on streams is the consumer's own affair (XAP-10).
    const UNORDERED: bool;

    /// A tensor that keeps the object by a guard of this type.
    ///
    /// # Safety
    ///
    /// `tensor` was given by `hand_over` as kept, with `Held<G>`.
    unsafe fn kept<G: Send + 'static>(
        self,
        tensor: NonNull<dlpack_core::abi::DLManagedTensorVersioned>,
    ) -> Result<Self::Output, Raised>;

    /// Any other tensor.
    fn other(self, tensor: Managed) -> Result<Self::Output, Raised>;
}

/// Into a capsule.
struct Capsule<'py>(Python<'py>);

impl Sink for Capsule<'_> {
    type Output = *mut ffi::PyObject;
    const UNORDERED: bool = false;

    #[inline(always)]
    unsafe fn kept<G: Send + 'static>(
        self,
        tensor: NonNull<dlpack_core::abi::DLManagedTensorVersioned>,
    ) -> Result<Self::Output, Raised> {
        // SAFETY: passed on to the caller.
        unsafe { capsule::keep::<G>(self.0, tensor) }
    }

    fn other(self, tensor: Managed) -> Result<Self::Output, Raised> {
        capsule::wrap(self.0, tensor)
    }
}

/// Into the pointer that the exchange table gives out.
pub(crate) struct Pointer;

impl Sink for Pointer {
    type Output = NonNull<dlpack_core::abi::DLManagedTensorVersioned>;
    const UNORDERED: bool = true;

    #[inline(always)]
    unsafe fn kept<G: Send + 'static>(self, tensor: Self::Output) -> Result<Self::Output, Raised> {
        Ok(tensor)
    }

    fn other(self, tensor: Managed) -> Result<Self::Output, Raised> {
        Ok(tensor.into_raw())
    }
}

/// A new capsule for one consumer that asks for nothing in particular (CAP-12).
#[inline(always)]
pub(crate) fn to_capsule<T: Exports>(
    object: Borrowed<'_, '_, T>,
) -> Result<*mut ffi::PyObject, Raised> {
    export_plainly(object, Capsule(object.py()))
}

/// A new capsule for one consumer, as it asks for it.
pub(crate) fn to_capsule_with<T: Exports>(
    object: Borrowed<'_, '_, T>,
    request: &ExportRequest,
) -> Result<*mut ffi::PyObject, Raised> {
    export(object, request, Capsule(object.py()))
}

/// As [`export`], for [`ExportRequest::versioned`]: the short way, where the tensor is of the usual kind.
#[inline]
pub(crate) fn export_plainly<T: Exports, S: Sink>(
    object: Borrowed<'_, '_, T>,
    sink: S,
) -> Result<S::Output, Raised> {
    const REQUEST: ExportRequest = ExportRequest::versioned();
    if T::EXTRAS.usual.is_none() || T::EXTRAS.exclusive {
        return export(object, &REQUEST, sink);
    }
    let py = object.py();
    // SAFETY: the guard is dropped last here, or goes into `Held` together with the object.
    let (value, guard) = unsafe { T::Frozen::share(&object) }.or_raise(py)?;
    // Where the order is not ours, the request depends on the device, which only the long way looks up.
    let shared = if S::UNORDERED {
        None
    } else {
        while_attached(py, || share(value, &REQUEST))
    };
    match shared {
        None => {}
        Some(Ok(shared)) => return sink.other(shared),
        // The long way knows why, and whether it matters.
        Some(Err(_)) => return export(object, &REQUEST, sink),
    }
    let owner = Held::new(guard, object.as_any());
    // SAFETY: the guard keeps what is described borrowed, and `Held` keeps the object.
    match unsafe { hand_over_usual(owner, || usual(value)) } {
        UsualHandover::Kept(tensor) => {
            // SAFETY: it was given right above, for this type.
            unsafe { sink.kept::<<T::Frozen as Borrowing<T>>::Shared>(tensor) }
        }
        UsualHandover::Unusual => export(object, &REQUEST, sink),
        UsualHandover::OutOfMemory { bytes } => Err(refuse(py, Error::OutOfMemory { bytes })),
    }
}

/// Exports what an object holds, together with whatever keeps it in place.
///
/// The descriptor stays where it was made, and is read field by field: it is large to move.
#[inline(never)]
pub(crate) fn export<T: Exports, S: Sink>(
    object: Borrowed<'_, '_, T>,
    request: &ExportRequest,
    sink: S,
) -> Result<S::Output, Raised> {
    let py = object.py();
    // SAFETY: the guard is dropped last here, or goes into `Held` together with the object.
    let (value, guard) = unsafe { T::Frozen::share(&object) }.or_raise(py)?;
    match &mut value.describe() {
        Ok(descriptor) => {
            let unordered = S::UNORDERED.then(|| unordered(descriptor.device()));
            let request = unordered.as_ref().unwrap_or(request);
            if let Some(shared) = while_attached(py, || share(value, request)) {
                return sink.other(shared.map_err(|error| refuse(py, error))?);
            }
            if T::EXTRAS.exclusive && descriptor.is_read_only() {
                drop(guard);
                return export_exclusively(object, request, sink);
            }
            let object = object.as_any();
            // SAFETY: the guard keeps what was described borrowed, and `Held` keeps the object.
            unsafe { finish(guard, object, descriptor, request, sink) }
        }
        Err(error) => Err(refuse(py, error.clone())),
    }
}

/// The same under the exclusive borrow, so that the consumer may write.
#[inline(never)]
fn export_exclusively<T: Exports, S: Sink>(
    object: Borrowed<'_, '_, T>,
    request: &ExportRequest,
    sink: S,
) -> Result<S::Output, Raised> {
    let py = object.py();
    let mut guard = T::Frozen::exclude(&object).or_raise(py)?;
    let value: *mut T = &raw mut *guard;
    // SAFETY: the guard is the one way to the contents, and nobody uses it before it is dropped.
    let value = unsafe { &mut *value };
    match &mut value.describe_mut() {
        Ok(descriptor) => {
            // SAFETY: as in `export`.
            unsafe { finish(guard, object.as_any(), descriptor, request, sink) }
        }
        Err(error) => Err(refuse(py, error.clone())),
    }
}

/// # Safety
///
/// The described memory stays in place, and readable or writable as the descriptor says, until the
/// guard is dropped, which came from `object`.
#[inline]
unsafe fn finish<G: Send + 'static, S: Sink>(
    guard: G,
    object: &Bound<'_, PyAny>,
    descriptor: &mut Descriptor<'_>,
    request: &ExportRequest,
    sink: S,
) -> Result<S::Output, Raised> {
    let owner = || Held::new(guard, object);
    let handed = while_attached(object.py(), || {
        // SAFETY: passed on to the caller.
        unsafe { hand_over(owner, descriptor, request) }
    });
    match handed {
        Ok(Handover::Kept(tensor)) => {
            // SAFETY: it was given right above, for this type.
            unsafe { sink.kept::<G>(tensor) }
        }
        Ok(Handover::Other(tensor)) => sink.other(tensor),
        Err(error) => Err(refuse(object.py(), error)),
    }
}

/// A request for the tensor as it is, whose order is the consumer's affair (XAP-10).
pub(crate) fn unordered(device: Device) -> ExportRequest {
    ExportRequest {
        stream: unordered_stream(device),
        ..ExportRequest::versioned()
    }
}

/// Where the data of an object lies.
#[inline]
pub(crate) fn device<T: Exports>(object: &Bound<'_, T>) -> PyResult<Device> {
    // SAFETY: the guard is dropped last.
    let (value, _guard) = unsafe { T::Frozen::share(object) }?;
    if let Some(usual) = usual(value) {
        return Ok(usual.device());
    }
    Ok(value.describe().map_err(py_err)?.device())
}
