//! Containers of other crates that own the memory of an array: made, kept, and dropped on any thread or at its end.

use core::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{Device, OwnedSlice, View, ViewDyn, from_dlpack_with};
use pyo3::prelude::*;

/// The tests do not write an array while a container of its memory lives.
struct Undisturbed;
// SAFETY: the tests do not write an array while a container of its memory lives.
#[expect(unsafe_code, reason = "as in a user's crate")]
unsafe impl Promise for Undisturbed {}

static KEPT: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());

thread_local! {
    /// Dropped when the thread ends: on the main thread, after the interpreter.
    static KEPT_BY_THREAD: RefCell<Vec<Bytes>> = const { RefCell::new(Vec::new()) };
}

fn kept() -> std::sync::MutexGuard<'static, Vec<Bytes>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymodule]
pub(crate) mod slices {
    use super::*;

    /// Keeps the memory of an array as `Bytes`, and a clone of that. Returns the address.
    #[pyfunction]
    fn keep(array: ViewDyn<f64, Undisturbed>) -> PyResult<usize> {
        let bytes = Bytes::from_owner(array.into_slice()?.into_bytes());
        let address = bytes.as_ptr().addr();
        kept().extend([bytes.clone(), bytes]);
        Ok(address)
    }

    #[pyfunction]
    fn keep_by_thread(array: View<f64, 1, Undisturbed>) -> PyResult<()> {
        let bytes = Bytes::from_owner(array.into_slice()?.into_bytes());
        KEPT_BY_THREAD.with_borrow_mut(|kept| kept.push(bytes));
        Ok(())
    }

    /// The bytes of all kept containers.
    #[pyfunction]
    fn read() -> Vec<u8> {
        kept()
            .iter()
            .flat_map(|bytes| bytes.iter().copied())
            .collect()
    }

    /// Drops the kept containers, on this thread or another.
    #[pyfunction]
    #[pyo3(signature = (*, thread=false, detached=true))]
    fn release(py: Python<'_>, thread: bool, detached: bool) {
        let bytes = core::mem::take(&mut *kept());
        let release = move || {
            if thread {
                let releasing = std::thread::spawn(move || drop(bytes));
                releasing.join().expect("a deleter does not unwind");
            } else {
                drop(bytes);
            }
        };
        if detached {
            py.detach(release);
        } else {
            release();
        }
    }

    #[pyfunction]
    fn flags(array: View<bool, 1, Undisturbed>) -> PyResult<Vec<u8>> {
        Ok(array.into_slice()?.into_bytes().to_vec())
    }

    /// A copy that this crate requests from NumPy has no other users, so no promise is needed.
    #[pyfunction]
    fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let tensor = from_dlpack_with(object, Some(Device::CPU), Some(true))?;
        let view = dlpack_pyo3::array::View::<f64, [i64; 1]>::new(tensor)?;
        let slice: OwnedSlice<f64> = view.into_slice()?;
        Ok(slice.to_vec())
    }
}
