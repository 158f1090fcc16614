//! The one table of leases of a process, which all extension modules that are built with this crate share.
//!
//! Each module has a table of its own. The first module that needs one puts a capsule with the C interface of its table into
//! the dict of the main interpreter, where no Python code reaches it. All others find it there, and use the functions of
//! that module, whatever version of this crate it was built with. CPython never unloads an extension module, so interface
//! and table live as long as the process, and a lease is given back without Python, also while the interpreter ends.
//!
//! | change | version |
//! |---|---|
//! | another meaning of the functions, another `Span` | `major`: a module refuses views with a promise if the table has another one |
//! | functions behind the known ones | `minor` |
#![expect(
    unsafe_code,
    reason = "shares C functions with other extension modules"
)]

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::{process, thread};

use dlpack_core::Error;
use dlpack_core::binding::{LeaseTable, Leases, Span, TableLock};
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, prelude::*};

use crate::{error::forget_error, hidden::address_of, values::string};

const MAJOR: u32 = 1;
const MINOR: u32 = 0;
const NAME: &CStr = c"dlpack_pyo3.leases";

/// What [`Interface::take`] answers.
const TAKEN: c_int = 0;
const BORROWED: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;

/// The functions of a table.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Interface {
    /// Both numbers stand here in every version.
    major: u32,
    minor: u32,
    /// Writes a token, and returns one of the three constants above.
    take: unsafe extern "C" fn(span: *const Span, writes: c_int, token: *mut u64) -> c_int,
    /// Gives the lease of a token back, once, on any thread.
    give_back: unsafe extern "C" fn(token: u64),
}

impl Interface {
    /// Takes a lease, and gives its token.
    pub(super) fn take(&self, span: &Span, writes: bool) -> Result<u64, Error> {
        let mut token = 0;
        // SAFETY: version 1 of this function reads the span, and writes a token; both are places of that type.
        let status = unsafe { (self.take)(span, c_int::from(writes), &raw mut token) };
        match status {
            TAKEN => Ok(token),
            OUT_OF_MEMORY => Err(Error::OutOfMemory {
                bytes: size_of::<Span>(),
            }),
            _ => Err(Error::Borrowed),
        }
    }

    /// Gives a lease back that this table has given.
    pub(super) fn give_back(&self, token: u64) {
        // SAFETY: version 1 of this function takes any number, and the module that has it is never unloaded.
        unsafe { (self.give_back)(token) };
    }
}

/// Our own table, which is not used if another module has put its own into the interpreter.
static TABLE: LeaseTable<ProcessLock> = LeaseTable::new(ProcessLock(Mutex::new(Leases::new())));

static INTERFACE: Interface = Interface {
    major: MAJOR,
    minor: MINOR,
    take,
    give_back,
};

unsafe extern "C" fn take(span: *const Span, writes: c_int, token: *mut u64) -> c_int {
    // SAFETY: the caller passes a valid pointer to a span.
    let span = unsafe { span.read() };
    match TABLE.take(span, writes != 0, process::id()) {
        Ok(taken) => {
            // SAFETY: the caller passes a place for a token.
            unsafe { token.write(taken) };
            TAKEN
        }
        Err(Error::OutOfMemory { .. }) => OUT_OF_MEMORY,
        Err(_) => BORROWED,
    }
}

unsafe extern "C" fn give_back(token: u64) {
    TABLE.give_back(token);
}

/// The lock is held for a few instructions at a time. In a child that was forked in between it stays locked.
struct ProcessLock(Mutex<Leases>);

impl ProcessLock {
    fn lock(&self) -> Option<MutexGuard<'_, Leases>> {
        for turn in 0..2000 {
            match self.0.try_lock() {
                Ok(leases) => return Some(leases),
                // Nothing panics between two changes of the list.
                Err(TryLockError::Poisoned(leases)) => return Some(leases.into_inner()),
                Err(TryLockError::WouldBlock) if turn < 1000 => thread::yield_now(),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }
}

impl TableLock for ProcessLock {
    fn with<R>(&self, change: impl FnOnce(&mut Leases) -> R) -> Option<R> {
        Some(change(&mut *self.lock()?))
    }
}

/// The interface that was found in the interpreter; null until then.
static FOUND: AtomicPtr<Interface> = AtomicPtr::new(null_mut());

/// The table of this process.
///
/// # Errors
///
/// [`Error::NoLeaseTable`] if it cannot be found, or if it is the table of a module with another major version.
#[inline]
pub(super) fn of_process() -> Result<&'static Interface, Error> {
    let found = FOUND.load(Ordering::Acquire);
    // SAFETY: null, or the address of an interface of our major version, which is never freed.
    unsafe { found.as_ref() }.map_or_else(find, Ok)
}

#[cold]
fn find() -> Result<&'static Interface, Error> {
    // A view may be made on a thread that is not attached to the interpreter.
    let found = Python::try_attach(find_in_interpreter);
    let found = found.unwrap_or(Err("Python is not running"));
    let found = found.map_err(|why| Error::NoLeaseTable { why })?;
    FOUND.store(found, Ordering::Release);
    // SAFETY: `find_in_interpreter` gives the address of an interface of our major version, which is never freed.
    Ok(unsafe { &*found })
}

/// The address of the table that the interpreter has, which is ours if there was none; or why there is none.
fn find_in_interpreter(py: Python<'_>) -> Result<*mut Interface, &'static str> {
    let failed = |error| {
        forget_error(py, error);
        "the interpreter has no memory for their table"
    };
    let dict = main_dict(py)?;
    let ours = (&raw const INTERFACE).cast_mut().cast::<c_void>();
    // SAFETY: attached; an address that is not null, a name that lives as long as the process, and nothing to destroy.
    let ours = unsafe { ffi::PyCapsule_New(ours, NAME.as_ptr(), None) };
    // SAFETY: attached; a new reference, or null with an exception.
    let ours = unsafe { Bound::from_owned_ptr_or_err(py, ours) }.map_err(failed)?;
    // Not by `intern!`, whose lock lets other threads run: a child that is forked meanwhile would wait for it forever.
    let [set, key] = ["setdefault", "dlpack_pyo3.leases"].map(|text| string(py, text));
    let (set, key) = (set.map_err(failed)?, key.map_err(failed)?);
    // Of two modules that do this at the same time one is the first.
    let found = dict.call_method1(set, (key, ours));
    let found = found.map_err(failed)?;
    let found = found.cast_into::<PyCapsule>();
    let found = found.map_err(|_| "their table is no capsule")?;
    // SAFETY: attached; a capsule. It raises nothing.
    if unsafe { ffi::PyCapsule_IsValid(found.as_ptr(), NAME.as_ptr()) } == 0 {
        return Err("the capsule of their table has another name");
    }
    // SAFETY: attached; a capsule of this name.
    let address = unsafe { ffi::PyCapsule_GetPointer(found.as_ptr(), NAME.as_ptr()) };
    // SAFETY: an interface begins with its major version, in every version.
    let major = unsafe { address.cast::<u32>().read() };
    if major != MAJOR {
        return Err(
            "another extension module of this process was built with a version of dlpack-pyo3 whose table has another \
             form; build both with the same one",
        );
    }
    Ok(address.cast())
}

/// The dict of the main interpreter, for extension modules to keep things in.
fn main_dict(py: Python<'_>) -> Result<Bound<'_, PyDict>, &'static str> {
    // SAFETY: attached.
    let mut interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: attached, to this interpreter.
    if unsafe { ffi::PyInterpreterState_GetID(interpreter) } != 0 {
        interpreter = main_interpreter(py)?;
    }
    // SAFETY: an interpreter that is alive; a borrowed reference, or null without an exception.
    let dict = unsafe { ffi::PyInterpreterState_GetDict(interpreter) };
    // SAFETY: as above; the interpreter holds its dict while this thread has the lock of all interpreters.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, dict) };
    let dict = dict.and_then(|dict| dict.cast_into::<PyDict>().ok());
    dict.ok_or("the interpreter has no dict for their table")
}

/// The main interpreter, seen from another one: memory belongs to all of them.
fn main_interpreter(py: Python<'_>) -> Result<*mut ffi::PyInterpreterState, &'static str> {
    type Main = unsafe extern "C" fn() -> *mut ffi::PyInterpreterState;
    const FAILED: &str = "a subinterpreter cannot reach the table of the main interpreter";

    // From Python 3.12 on an interpreter may have a lock of its own, so nothing of another one can be used.
    if py.version_info() >= (3, 12) {
        return Err(FAILED);
    }
    match address_of(py, "PyInterpreterState_Main") {
        Ok(address) if address != 0 => {
            let function = core::ptr::with_exposed_provenance_mut::<c_void>(address);
            // SAFETY: the address of that function of C, which every Python has.
            let function = unsafe { core::mem::transmute::<*mut c_void, Main>(function) };
            // SAFETY: always allowed.
            Ok(unsafe { function() })
        }
        Ok(_) => Err(FAILED),
        Err(error) => {
            forget_error(py, error);
            Err(FAILED)
        }
    }
}
