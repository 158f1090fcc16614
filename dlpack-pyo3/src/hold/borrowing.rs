//! Borrows of a class's contents that last as long as a consumer looks at them.
#![expect(
    unsafe_code,
    reason = "keeps borrows of Python objects beyond the borrow checker's sight"
)]

use core::convert::Infallible;
use core::marker::PhantomData;
use core::mem::transmute;
use core::ops::{Deref, DerefMut};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::{False, True};
use pyo3::{PyClass, PyClassGuard, PyClassGuardMut};

/// How the contents of an object are borrowed for as long as a consumer likes, by whether its class is frozen.
pub trait Borrowing<T: PyClass> {
    /// The shared borrow.
    #[doc(hidden)]
    type Shared: Send + 'static;

    /// The exclusive borrow.
    #[doc(hidden)]
    type Exclusive: DerefMut<Target = T> + Send + 'static;

    /// Borrows the contents of an object, which are given for as long as the borrow lives.
    ///
    /// # Safety
    ///
    /// The contents are not used after the borrow or the object is dropped.
    #[doc(hidden)]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> PyResult<(&'a T, Self::Shared)>;

    /// Borrows the contents of an object exclusively, if its class can be and is not borrowed already.
    #[doc(hidden)]
    fn exclude(object: &Bound<'_, T>) -> PyResult<Self::Exclusive>;
}

/// What never changes needs no borrow: the object is enough.
impl<T: PyClass<Frozen = True> + Sync> Borrowing<T> for True {
    type Shared = ();
    type Exclusive = Never<T>;

    #[inline]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> PyResult<(&'a T, ())> {
        let value: *const T = object.get();
        // SAFETY: the contents of a Python object do not move; the caller keeps it.
        Ok((unsafe { &*value }, ()))
    }

    fn exclude(_: &Bound<'_, T>) -> PyResult<Never<T>> {
        Err(PyBufferError::new_err(format!(
            "`{}` says `writable`, but is frozen, so nobody can borrow it for writing: remove `frozen`, or keep the data in a `SharedBuffer`",
            <T as PyClass>::NAME
        )))
    }
}

impl<T: PyClass<Frozen = False> + Send + Sync> Borrowing<T> for False {
    type Shared = PyClassGuard<'static, T>;
    type Exclusive = PyClassGuardMut<'static, T>;

    #[inline]
    unsafe fn share<'a>(object: &Bound<'_, T>) -> PyResult<(&'a T, Self::Shared)> {
        let object = object.as_any().as_borrowed();
        let Ok(guard) = object.extract::<PyClassGuard<'_, T>>() else {
            return Err(already_borrowed::<T>("mutably borrowed"));
        };
        // SAFETY: only the lifetime changes. The guard points into the object, whose contents do not
        // move, and the caller keeps it until the guard is gone.
        let guard = unsafe { transmute::<PyClassGuard<'_, T>, Self::Shared>(guard) };
        let value: *const T = &raw const *guard;
        // SAFETY: the guard keeps the contents borrowed, and the caller keeps the guard.
        Ok((unsafe { &*value }, guard))
    }

    fn exclude(object: &Bound<'_, T>) -> PyResult<Self::Exclusive> {
        let object = object.as_any().as_borrowed();
        let Ok(guard) = object.extract::<PyClassGuardMut<'_, T>>() else {
            return Err(already_borrowed::<T>("borrowed"));
        };
        // SAFETY: as above.
        Ok(unsafe { transmute::<PyClassGuardMut<'_, T>, Self::Exclusive>(guard) })
    }
}

#[cold]
fn already_borrowed<T: PyClass>(how: &str) -> PyErr {
    PyBufferError::new_err(format!(
        "`{}` cannot be exported now: it is {how}, by a method that is still running or by a consumer that still has its data",
        <T as PyClass>::NAME
    ))
}

/// The exclusive borrow of what cannot be borrowed exclusively.
pub enum Never<T> {
    #[doc(hidden)]
    Never(Infallible, PhantomData<fn() -> T>),
}

impl<T> Deref for Never<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match *self {
            Self::Never(never, _) => match never {},
        }
    }
}

impl<T> DerefMut for Never<T> {
    fn deref_mut(&mut self) -> &mut T {
        match *self {
            Self::Never(never, _) => match never {},
        }
    }
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
    object.try_borrow().map_err(|_| in_use::<T>("read"))
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
    object.try_borrow_mut().map_err(|_| in_use::<T>("changed"))
}

#[cold]
fn in_use<T: PyClass>(what: &str) -> PyErr {
    PyBufferError::new_err(format!(
        "`{}` cannot be {what} now: a consumer still has its data",
        <T as PyClass>::NAME
    ))
}
