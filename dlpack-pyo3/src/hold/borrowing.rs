//! Borrows of a class's contents that last as long as a consumer looks at them.
#![expect(unsafe_code, reason = "keeps borrows that the compiler cannot see")]

use core::mem::MaybeUninit;

use pyo3::pyclass::boolean_struct::{False, True};
use pyo3::{PyClass, PyClassGuard, PyClassGuardMut, exceptions::PyBufferError, prelude::*};

use crate::error::{Raised, bail, fail};
use crate::hold::held::{Held, Lends, Lent, Owner};

/// How the contents of an object are borrowed for as long as a consumer likes, by whether its class is frozen.
pub trait Borrowing<T: PyClass> {
    /// Whether nobody can change the contents.
    #[doc(hidden)]
    const FROZEN: bool;

    /// What ends a shared borrow when it is dropped.
    #[doc(hidden)]
    type Reader: Guard + Into<Self::Guard>;

    /// What ends an exclusive borrow when it is dropped.
    #[doc(hidden)]
    type Writer: Guard + Into<Self::Guard>;

    /// Either, of whatever class: code that has it is compiled once.
    #[doc(hidden)]
    type Guard: Send + Into<AnyGuard> + 'static;

    /// Borrows the contents of an object, which are given for as long as the borrow lives; nothing if it is borrowed
    /// mutably.
    ///
    /// # Safety
    ///
    /// The contents are not used after the guard or the object is dropped.
    #[doc(hidden)]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> Option<(&'a T, Self::Reader)>;

    /// Borrows the contents of an object exclusively, if its class can be and is not borrowed already.
    ///
    /// # Safety
    ///
    /// As [`share`](Borrowing::share).
    #[doc(hidden)]
    unsafe fn exclude<'a>(object: &Bound<'_, T>) -> Result<(&'a mut T, Self::Writer), Raised>;
}

/// How an object of a class is borrowed.
pub(crate) type GuardOf<T> = <<T as PyClass>::Frozen as Borrowing<T>>::Guard;

/// A borrow of an object of one class.
pub trait Guard: Send + 'static {
    /// What keeps both for an export.
    type Owner: Owner;

    /// Goes into an export together with the object, which is the one that is borrowed.
    fn keep(self, object: &Bound<'_, PyAny>) -> Self::Owner;
}

/// No borrow.
impl Guard for () {
    type Owner = Held<()>;

    #[inline]
    fn keep(self, object: &Bound<'_, PyAny>) -> Held<()> {
        Held::new((), object)
    }
}

impl<P: Lends> Guard for P {
    type Owner = Lent<P>;

    #[inline]
    fn keep(self, object: &Bound<'_, PyAny>) -> Lent<P> {
        Lent::new(self, object.py())
    }
}

/// What never changes needs no borrow: the object is enough.
impl<T: PyClass<Frozen = True> + Sync> Borrowing<T> for True {
    const FROZEN: bool = true;
    type Reader = ();
    type Writer = ();
    type Guard = ();

    #[inline]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> Option<(&'a T, ())> {
        let value: *const T = object.get();
        // SAFETY: the contents of a Python object do not move; the caller keeps it.
        Some((unsafe { &*value }, ()))
    }

    unsafe fn exclude<'a>(object: &Bound<'_, T>) -> Result<(&'a mut T, ()), Raised> {
        let (py, class) = (object.py(), <T as PyClass>::NAME);
        bail!(py, PyBufferError:
            "`{class}` says `writable`, but is frozen, so nobody can borrow it for writing: remove `frozen`, or keep the data in a `SharedBuffer`");
    }
}

impl<T: PyClass<Frozen = False> + Send + Sync> Borrowing<T> for False {
    const FROZEN: bool = false;
    type Reader = PyClassGuard<'static, T>;
    type Writer = PyClassGuardMut<'static, T>;
    type Guard = AnyGuard;

    #[inline]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> Option<(&'a T, PyClassGuard<'static, T>)> {
        // SAFETY: the caller keeps the object until the guard is gone.
        let object = unsafe { kept(object) };
        let guard = object.extract::<PyClassGuard<'static, T>>().ok()?;
        let value: *const T = &raw const *guard;
        // SAFETY: the guard keeps the contents borrowed, which do not move, and the caller keeps the guard.
        Some((unsafe { &*value }, guard))
    }

    unsafe fn exclude<'a>(
        object: &Bound<'_, T>,
    ) -> Result<(&'a mut T, PyClassGuardMut<'static, T>), Raised> {
        // SAFETY: as above.
        let object = unsafe { kept(object) };
        let Ok(mut guard) = object.extract::<PyClassGuardMut<'static, T>>() else {
            let class = <T as PyClass>::NAME;
            return Err(already_borrowed(object.py(), class, "borrowed"));
        };
        let value: *mut T = &raw mut *guard;
        // SAFETY: the guard is the one way to the contents, and nobody uses it before it is dropped.
        Ok((unsafe { &mut *value }, guard))
    }
}

/// An object for as long as the caller likes.
///
/// # Safety
///
/// The caller keeps it for that long.
#[inline]
unsafe fn kept<'py, T>(object: &Bound<'py, T>) -> Borrowed<'static, 'py, PyAny> {
    // SAFETY: an object, which the caller keeps.
    unsafe { Borrowed::from_ptr(object.py(), object.as_ptr()) }
}

/// One of PyO3's guards, of whatever class: what holds it need not be compiled for each.
pub struct AnyGuard {
    guard: MaybeUninit<*mut ()>,
    drop: unsafe fn(*mut ()),
}

// SAFETY: `from` takes only guards that are `Send`, and nothing but their drop is done.
unsafe impl Send for AnyGuard {}

/// No borrow: what is frozen needs none.
impl From<()> for AnyGuard {
    #[inline]
    fn from((): ()) -> Self {
        Self {
            guard: MaybeUninit::uninit(),
            drop: |_| {},
        }
    }
}

impl<P: Lends> From<P> for AnyGuard {
    #[inline]
    fn from(guard: P) -> Self {
        const {
            assert!(size_of::<P>() <= size_of::<*mut ()>());
            assert!(align_of::<P>() <= align_of::<*mut ()>());
        }
        let mut place = MaybeUninit::<*mut ()>::uninit();
        // SAFETY: there is room for it, as was checked right above.
        unsafe { place.as_mut_ptr().cast::<P>().write(guard) };
        Self {
            guard: place,
            // SAFETY: only called by `drop` below, with the guard that was written right above.
            drop: |place| unsafe { place.cast::<P>().drop_in_place() },
        }
    }
}

impl Drop for AnyGuard {
    #[inline]
    fn drop(&mut self) {
        let place = self.guard.as_mut_ptr().cast();
        // SAFETY: its one drop; what it borrows is still there.
        unsafe { (self.drop)(place) };
    }
}

/// As [`Borrowing::share`], with an exception where that fails.
///
/// # Safety
///
/// As [`Borrowing::share`].
#[inline]
pub(crate) unsafe fn share<'a, T: PyClass<Frozen: Borrowing<T>>>(
    object: &Bound<'_, T>,
) -> Result<(&'a T, GuardOf<T>), Raised> {
    // SAFETY: passed on to the caller.
    let shared = unsafe { T::Frozen::share(object) };
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

/// PyO3's shared borrow, with a `BufferError` where it fails because a consumer has the data.
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
    object.try_borrow().map_err(|_| in_use(object, "read"))
}

/// PyO3's exclusive borrow, with a `BufferError` where it fails because a consumer has the data: what
/// `bytearray` does when it is to grow under a `memoryview`.
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
    borrowed.map_err(|_| in_use(object, "changed"))
}

#[cold]
fn in_use<T: PyClass>(object: &Bound<'_, T>, what: &str) -> PyErr {
    let (py, class) = (object.py(), <T as PyClass>::NAME);
    fail!(py, PyBufferError: "`{class}` cannot be {what} now: a consumer still has its data")
        .fetch(py)
}
