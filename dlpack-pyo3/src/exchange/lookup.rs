//! Exchange tables of classes, ours and others': what marks one of ours, and how one is found.
#![expect(unsafe_code, reason = "reads tables of C functions")]

use core::ffi::{CStr, c_void};
use core::sync::atomic::AtomicBool;

use dlpack_core::Device;
use dlpack_core::abi::{self, DLPackExchangeAPI, DLPackExchangeAPIHeader};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{intern, prelude::*};

use crate::hidden::class_attribute;

/// The name of the capsule.
// XAP-02
pub(crate) const NAME: &CStr = abi::CAPSULE_EXCHANGE_API;

/// A table of ours, and what only we ask it.
#[repr(C)]
pub(crate) struct OwnTable {
    pub(crate) api: DLPackExchangeAPI,
    pub(crate) device: DeviceOf,
}

/// Where the data of an object lies, if that can be said.
pub(crate) type DeviceOf = fn(&Bound<'_, PyAny>) -> Option<Device>;

/// The context of a capsule with a table of ours: an address that is nobody else's.
pub(crate) fn mark() -> *mut c_void {
    static MARK: AtomicBool = AtomicBool::new(false);
    MARK.as_ptr().cast()
}

/// The table of a class.
pub(crate) struct ClassTable {
    pub(crate) api: &'static DLPackExchangeAPI,
    /// It is a table of ours.
    pub(crate) device: Option<DeviceOf>,
}

/// The table of somebody else's class, if it has one that we can read.
// XAP-27
pub(crate) fn of_class(class: &Bound<'_, PyType>) -> Option<ClassTable> {
    let name = intern!(class.py(), "__dlpack_c_exchange_api__");
    let capsule = class_attribute(class, name)?
        .cast_into::<PyCapsule>()
        .ok()?;
    let table = capsule.pointer_checked(Some(NAME)).ok()?.as_ptr();
    let mut header: *mut DLPackExchangeAPIHeader = table.cast();
    // So many older versions nobody has; a chain that is longer leads in a circle.
    for _ in 0..8 {
        if !header.is_aligned() {
            return None;
        }
        // SAFETY: a table lives for ever, and starts with its header.
        let found = unsafe { header.as_ref() }?;
        if found.version.major == abi::DLPACK_MAJOR_VERSION {
            // SAFETY: of this version, the header is the start of such a table.
            let api = unsafe { header.cast::<DLPackExchangeAPI>().as_ref() }?;
            let ours = capsule.context().is_ok_and(|context| context == mark());
            // SAFETY: only `install` marks capsules, around such tables.
            let device = ours.then(|| unsafe { (*table.cast::<OwnTable>()).device });
            return Some(ClassTable { api, device });
        }
        header = found.prev_api;
    }
    None
}
