//! Borrows of an object's contents that last until the consumer releases the tensor.
#![expect(
    unsafe_code,
    reason = "extends borrows beyond what the compiler can check"
)]

use core::mem::MaybeUninit;

use pyo3::pyclass::boolean_struct::{False, True};
use pyo3::{PyClass, PyClassGuard, PyClassGuardMut, exceptions::PyBufferError, prelude::*};

use crate::error::{Raised, bail, fail};
use crate::keepalive::guard::{CompactObjectGuard, ExportOwner, ObjectGuard, PyBorrowGuard};

/// How the contents of an object are borrowed, depending on whether its class is frozen.
pub trait ContentsBorrow<T: PyClass> {
    /// Whether the contents can never be borrowed mutably.
    #[doc(hidden)]
    const FROZEN: bool;

    /// The guard of a shared borrow.
    #[doc(hidden)]
    type Reader: BorrowGuard + Into<Self::BorrowGuard>;

    /// The guard of an exclusive borrow.
    #[doc(hidden)]
    type Writer: BorrowGuard + Into<Self::BorrowGuard>;

    /// Either guard, type-erased, so that code that owns it is compiled once for all classes.
    #[doc(hidden)]
    type BorrowGuard: Send + Into<AnyBorrowGuard> + 'static;

    /// Borrows the contents of an object; `None` if they are borrowed mutably.
    ///
    /// # Safety
    ///
    /// The reference is not used after the guard is dropped or the object is released.
    #[doc(hidden)]
    unsafe fn borrow_shared<'a>(object: &Bound<'_, T>) -> Option<(&'a T, Self::Reader)>;

    /// Borrows the contents of an object exclusively; an error if its class is frozen or the object is borrowed already.
    ///
    /// # Safety
    ///
    /// The reference is not used after the guard is dropped or the object is released.
    #[doc(hidden)]
    unsafe fn borrow_exclusive<'a>(
        object: &Bound<'_, T>,
    ) -> Result<(&'a mut T, Self::Writer), Raised>;
}

/// The type-erased guard of a borrow of a `T`; `()` if the class is frozen.
type BorrowGuardOf<T> = <<T as PyClass>::Frozen as ContentsBorrow<T>>::BorrowGuard;

/// A guard that ends a borrow of an object when it is dropped.
pub trait BorrowGuard: Send + 'static {
    /// Owns the guard and the object for an export.
    type ExportOwner: ExportOwner;

    /// Converts into the owner of an export. `object` is the object that the guard borrows from, or
    /// for a frozen class any object that keeps the memory.
    fn into_owner(self, object: &Bound<'_, PyAny>) -> Self::ExportOwner;
}

/// A frozen class needs no guard.
impl BorrowGuard for () {
    type ExportOwner = ObjectGuard<()>;

    #[inline]
    fn into_owner(self, object: &Bound<'_, PyAny>) -> ObjectGuard<()> {
        ObjectGuard::new((), object)
    }
}

impl<P: PyBorrowGuard> BorrowGuard for P {
    type ExportOwner = CompactObjectGuard<P>;

    #[inline]
    fn into_owner(self, object: &Bound<'_, PyAny>) -> CompactObjectGuard<P> {
        CompactObjectGuard::new(self, object.py())
    }
}

/// The contents of a frozen class never change, so a reference to the object suffices.
impl<T: PyClass<Frozen = True> + Sync> ContentsBorrow<T> for True {
    const FROZEN: bool = true;
    type Reader = ();
    type Writer = ();
    type BorrowGuard = ();

    #[inline]
    unsafe fn borrow_shared<'a>(object: &Bound<'_, T>) -> Option<(&'a T, ())> {
        let value: *const T = object.get();
        // SAFETY: the contents of a Python object do not move, and the caller keeps the object alive while it uses them.
        Some((unsafe { &*value }, ()))
    }

    unsafe fn borrow_exclusive<'a>(object: &Bound<'_, T>) -> Result<(&'a mut T, ()), Raised> {
        let (py, class) = (object.py(), <T as PyClass>::NAME);
        bail!(py, PyBufferError:
            "`{class}` is `writable` and frozen, and a frozen object cannot be borrowed for writing: remove `frozen`, or keep the data in a `SharedBuffer`");
    }
}

impl<T: PyClass<Frozen = False> + Send + Sync> ContentsBorrow<T> for False {
    const FROZEN: bool = false;
    type Reader = PyClassGuard<'static, T>;
    type Writer = PyClassGuardMut<'static, T>;
    type BorrowGuard = AnyBorrowGuard;

    #[inline]
    unsafe fn borrow_shared<'a>(
        object: &Bound<'_, T>,
    ) -> Option<(&'a T, PyClassGuard<'static, T>)> {
        // SAFETY: the caller keeps the object alive until the guard is dropped, by this function's contract.
        let object = unsafe { extend_lifetime(object) };
        let guard = object.extract::<PyClassGuard<'static, T>>().ok()?;
        let value: *const T = &raw const *guard;
        // SAFETY: the contents do not move, and the caller does not use them after the guard is dropped, by this function's
        // contract.
        Some((unsafe { &*value }, guard))
    }

    unsafe fn borrow_exclusive<'a>(
        object: &Bound<'_, T>,
    ) -> Result<(&'a mut T, PyClassGuardMut<'static, T>), Raised> {
        // SAFETY: the caller keeps the object alive until the guard is dropped, by this function's contract.
        let object = unsafe { extend_lifetime(object) };
        let Ok(mut guard) = object.extract::<PyClassGuardMut<'static, T>>() else {
            let class = <T as PyClass>::NAME;
            return Err(already_borrowed(object.py(), class, "borrowed"));
        };
        let value: *mut T = &raw mut *guard;
        // SAFETY: the borrow is exclusive, and the guard itself is not used before it is dropped.
        Ok((unsafe { &mut *value }, guard))
    }
}

/// Extends the lifetime of a reference to an object.
///
/// # Safety
///
/// The caller keeps the object alive for as long as the result is used.
#[inline]
unsafe fn extend_lifetime<'py, T>(object: &Bound<'py, T>) -> Borrowed<'static, 'py, PyAny> {
    // SAFETY: a valid object, which the caller keeps alive.
    unsafe { Borrowed::from_ptr(object.py(), object.as_ptr()) }
}

/// A type-erased guard of PyO3, so that its owner need not be compiled for each class.
pub struct AnyBorrowGuard {
    guard: MaybeUninit<*mut ()>,
    drop: unsafe fn(*mut ()),
}

// SAFETY: `from` takes only guards that are `Send`, and they are only dropped.
unsafe impl Send for AnyBorrowGuard {}

/// A frozen class needs no guard.
impl From<()> for AnyBorrowGuard {
    #[inline]
    fn from((): ()) -> Self {
        Self {
            guard: MaybeUninit::uninit(),
            drop: |_| {},
        }
    }
}

impl<P: PyBorrowGuard> From<P> for AnyBorrowGuard {
    #[inline]
    fn from(guard: P) -> Self {
        const {
            assert!(size_of::<P>() <= size_of::<*mut ()>());
            assert!(align_of::<P>() <= align_of::<*mut ()>());
        }
        let mut place = MaybeUninit::<*mut ()>::uninit();
        // SAFETY: the guard fits into the pointer's size and alignment, as the assertions check.
        unsafe { place.as_mut_ptr().cast::<P>().write(guard) };
        Self {
            guard: place,
            // SAFETY: only `AnyBorrowGuard::drop` calls this, with the guard that was written to `place`.
            drop: |place| unsafe { place.cast::<P>().drop_in_place() },
        }
    }
}

impl Drop for AnyBorrowGuard {
    #[inline]
    fn drop(&mut self) {
        let place = self.guard.as_mut_ptr().cast();
        // SAFETY: the guard is dropped once, here; its object is still alive.
        unsafe { (self.drop)(place) };
    }
}

/// Borrows the contents of an object; raises `BufferError` if they are borrowed mutably.
///
/// # Safety
///
/// The reference is not used after the guard is dropped or the object is released.
#[inline]
pub(crate) unsafe fn borrow_contents<'a, T: PyClass<Frozen: ContentsBorrow<T>>>(
    object: &Bound<'_, T>,
) -> Result<(&'a T, BorrowGuardOf<T>), Raised> {
    // SAFETY: same contract as this function's: the reference is not used after the guard or the object is gone.
    let shared = unsafe { T::Frozen::borrow_shared(object) };
    let refused = || already_borrowed(object.py(), <T as PyClass>::NAME, "mutably borrowed");
    shared
        .map(|(value, guard)| (value, guard.into()))
        .ok_or_else(refused)
}

#[cold]
pub(crate) fn already_borrowed(py: Python<'_>, class: &str, how: &str) -> Raised {
    fail!(py, PyBufferError:
        "`{class}` cannot be exported now: it is {how}, by a method that is still running or by a consumer that still has its data")
}

/// PyO3's shared borrow, with a `BufferError` if it fails because a consumer has the data.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::borrow_or_buffer_error;
/// use pyo3::prelude::*;
///
/// #[pyclass]
/// struct Samples(Vec<f32>);
///
/// #[pyfunction]
/// fn count(samples: &Bound<'_, Samples>) -> PyResult<usize> {
///     Ok(borrow_or_buffer_error(samples)?.0.len())
/// }
/// ```
///
/// # Errors
///
/// `BufferError` if the object is borrowed for writing.
pub fn borrow_or_buffer_error<'py, T: PyClass>(object: &Bound<'py, T>) -> PyResult<PyRef<'py, T>> {
    object
        .try_borrow()
        .map_err(|_| in_use_error(object, "read"))
}

/// PyO3's exclusive borrow, with a `BufferError` if it fails because a consumer has the data, as for a `bytearray` that is to
/// grow while a `memoryview` of it exists.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::borrow_mut_or_buffer_error;
/// use pyo3::prelude::*;
///
/// #[pyclass]
/// struct Samples(Vec<f32>);
///
/// #[pymethods]
/// impl Samples {
///     fn push(slf: &Bound<'_, Self>, sample: f32) -> PyResult<()> {
///         borrow_mut_or_buffer_error(slf)?.0.push(sample);
///         Ok(())
///     }
/// }
/// ```
///
/// # Errors
///
/// `BufferError` if the object is borrowed.
pub fn borrow_mut_or_buffer_error<'py, T: PyClass<Frozen = False>>(
    object: &Bound<'py, T>,
) -> PyResult<PyRefMut<'py, T>> {
    let borrowed = object.try_borrow_mut();
    borrowed.map_err(|_| in_use_error(object, "changed"))
}

#[cold]
fn in_use_error<T: PyClass>(object: &Bound<'_, T>, what: &str) -> PyErr {
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    fail!(py, PyBufferError: "`{class}` cannot be {what} now: a consumer still has its data")
        .take_exception(py)
}
