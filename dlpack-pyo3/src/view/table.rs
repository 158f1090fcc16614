//! The table of leases of a process, shared by all extension modules that are built with this crate.
//!
//! Each module has a table of its own. The first module that needs one stores a capsule with the C interface of its table in
//! the dict of the main interpreter, which Python code can find only among all objects of the garbage collector. All other
//! modules find it there, and use the functions of that module, whatever version of this crate it was built with. CPython never
//! unloads an extension module, so the interface and the table live as long as the process. A lease is released without Python,
//! also during interpreter shutdown.
//!
//! | change | version |
//! |---|---|
//! | the functions or `Span` change their meaning | `major`: a module refuses views with a promise if the table has another one |
//! | functions are added at the end | `minor` |
#![expect(
    unsafe_code,
    reason = "shares C functions with other extension modules"
)]

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use dlpack_core::Error;
use dlpack_core::binding::{LeaseTable, Span};
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, prelude::*};

use crate::{capi::interpreter_id, error::discard_error, values::new_string};

mod lock;

use lock::ForkSafeLock;

const MAJOR: u32 = 1;
const MINOR: u32 = 0;
const NAME: &CStr = c"dlpack_pyo3.leases";

/// The results of [`LeaseInterface::take_lease`].
const TAKEN: c_int = 0;
const BORROWED: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
/// Modules that do not know this result take it for `BORROWED`.
const UNAVAILABLE: c_int = 3;

/// The functions of a table.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LeaseInterface {
    /// Both numbers are at these offsets in every version.
    major: u32,
    minor: u32,
    /// Writes a token and returns `TAKEN`, or returns one of the other results.
    take: unsafe extern "C" fn(span: *const Span, writes: c_int, token: *mut u64) -> c_int,
    /// Releases the lease of a token, once, on any thread.
    give_back: unsafe extern "C" fn(token: u64),
}

impl LeaseInterface {
    /// Takes a lease, and returns its token.
    pub(super) fn take_lease(&self, span: &Span, writes: bool) -> Result<u64, Error> {
        let mut token = 0;
        // SAFETY: this function of version 1 reads a span and writes a token; both pointers are valid for that.
        let status = unsafe { (self.take)(span, c_int::from(writes), &raw mut token) };
        match status {
            TAKEN => Ok(token),
            OUT_OF_MEMORY => Err(Error::OutOfMemory {
                bytes: size_of::<Span>(),
            }),
            UNAVAILABLE => Err(Error::NoLeaseTable {
                why: "the lock of their table was not released in time, as in a `fork` that takes long",
            }),
            _ => Err(Error::Borrowed),
        }
    }

    /// Releases a lease of this table.
    pub(super) fn release_lease(&self, token: u64) {
        // SAFETY: this function of version 1 accepts any number, and the module that defines it is never unloaded.
        unsafe { (self.give_back)(token) };
    }
}

/// The table of this module, which is unused if another module has stored its own in the interpreter.
static TABLE: LeaseTable<&ForkSafeLock> = LeaseTable::new(&lock::LOCK);

static INTERFACE: LeaseInterface = LeaseInterface {
    major: MAJOR,
    minor: MINOR,
    take,
    give_back,
};

unsafe extern "C" fn take(span: *const Span, writes: c_int, token: *mut u64) -> c_int {
    // SAFETY: the caller passes a valid pointer to a span.
    let span = unsafe { span.read() };
    match TABLE.take(span, writes != 0) {
        Ok(taken) => {
            // SAFETY: the caller passes a pointer to a token, valid for writes.
            unsafe { token.write(taken) };
            TAKEN
        }
        Err(Error::OutOfMemory { .. }) => OUT_OF_MEMORY,
        Err(Error::NoLeaseTable { .. }) => UNAVAILABLE,
        Err(_) => BORROWED,
    }
}

unsafe extern "C" fn give_back(token: u64) {
    TABLE.give_back(token);
}

/// The interface that was found in the interpreter; null before the first lookup.
static FOUND: AtomicPtr<LeaseInterface> = AtomicPtr::new(null_mut());

/// The table of this process.
///
/// # Errors
///
/// [`Error::NoLeaseTable`] if it cannot be found, or if it is the table of a module with another major version.
#[inline]
pub(super) fn process_table() -> Result<&'static LeaseInterface, Error> {
    let found = FOUND.load(Ordering::Acquire);
    // SAFETY: null, or the address of an interface of our major version, which is never freed.
    unsafe { found.as_ref() }.map_or_else(find_table, Ok)
}

#[cold]
fn find_table() -> Result<&'static LeaseInterface, Error> {
    // A view may be created on a thread that is not attached to the interpreter.
    let found = Python::try_attach(find_in_interpreter);
    let found = found.unwrap_or(Err("Python is not running"));
    let found = found.map_err(|why| Error::NoLeaseTable { why })?;
    FOUND.store(found, Ordering::Release);
    // SAFETY: `find_in_interpreter` returns the address of an interface of our major version, which is never freed.
    Ok(unsafe { &*found })
}

/// The address of the table in the interpreter, where ours is stored if there was none; or why it cannot be used.
fn find_in_interpreter(py: Python<'_>) -> Result<*mut LeaseInterface, &'static str> {
    let failed = |error| {
        discard_error(py, error);
        "the interpreter has no memory for their table"
    };
    lock::hold_lock_during_forks()?;
    let dict = main_dict(py)?;
    let ours = (&raw const INTERFACE).cast_mut().cast::<c_void>();
    // SAFETY: attached, as `py` shows; the address is not null, and the name is static. The capsule has no destructor.
    let ours = unsafe { ffi::PyCapsule_New(ours, NAME.as_ptr(), None) };
    // SAFETY: attached, as `py` shows; a new reference, or null with an exception.
    let ours = unsafe { Bound::from_owned_ptr_or_err(py, ours) }.map_err(failed)?;
    // `intern!` would take a lock that lets other threads run: a child that is forked meanwhile would wait for it forever.
    let [set, key] = ["setdefault", "dlpack_pyo3.leases"].map(|text| new_string(py, text));
    let (set, key) = (set.map_err(failed)?, key.map_err(failed)?);
    // If two modules do this at the same time, `setdefault` keeps the first.
    let found = dict.call_method1(set, (key, ours));
    let found = found.map_err(failed)?;
    let found = found.cast_into::<PyCapsule>();
    let found = found.map_err(|_| "their table is no capsule")?;
    // SAFETY: attached, as `py` shows; a valid capsule, for which this raises no exception.
    if unsafe { ffi::PyCapsule_IsValid(found.as_ptr(), NAME.as_ptr()) } == 0 {
        return Err("the capsule of their table has another name");
    }
    // SAFETY: attached, as `py` shows; a capsule of this name.
    let address = unsafe { ffi::PyCapsule_GetPointer(found.as_ptr(), NAME.as_ptr()) };
    // SAFETY: an interface of every version starts with its major version.
    let major = unsafe { address.cast::<u32>().read() };
    if major != MAJOR {
        return Err(
            "another extension module of this process was built with a version of dlpack-pyo3 whose table has another \
             form; build both with the same one",
        );
    }
    Ok(address.cast())
}

/// The main interpreter's dict for extension modules.
fn main_dict(py: Python<'_>) -> Result<Bound<'_, PyDict>, &'static str> {
    // SAFETY: attached, as `py` shows.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // Arrays are refused in a sub-interpreter. It may have a lock of its own, and then cannot use the dict of the main one.
    if interpreter_id(py) != 0 {
        return Err("a subinterpreter cannot reach the table of the main interpreter");
    }
    // SAFETY: the interpreter is alive; the result is a borrowed reference, or null without an exception.
    let dict = unsafe { ffi::PyInterpreterState_GetDict(interpreter) };
    // SAFETY: a borrowed reference or null. The interpreter keeps its dict while this thread holds the lock of all
    // interpreters.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, dict) };
    let dict = dict.and_then(|dict| dict.cast_into::<PyDict>().ok());
    dict.ok_or("the interpreter has no dict for their table")
}
