//! Looks up the exchange tables of classes, recognizes our own, and detects classes that inherit a table but override
//! `__dlpack__`.
#![expect(unsafe_code, reason = "reads tables of C functions")]

use core::ffi::{CStr, c_void};
use core::sync::atomic::AtomicBool;

use dlpack_core::Device;
use dlpack_core::abi::{self, DLPackExchangeAPI, DLPackExchangeAPIHeader};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::capi::class_attribute;
use crate::error::discard_error;
use crate::library::{classes_in_mro, paddle, torch};

/// The name of the capsule that holds a table.
// XAP-02
pub(crate) const NAME: &CStr = abi::CAPSULE_EXCHANGE_API;

/// A table of ours, followed by fields that only this crate reads.
#[repr(C)]
pub(crate) struct OwnTable {
    pub(crate) api: DLPackExchangeAPI,
    pub(crate) device: DeviceOf,
    /// The address of the class that defines the table; 0 until it is installed.
    pub(crate) class: usize,
}

/// The device of an object's data, if it can be told.
pub(crate) type DeviceOf = fn(&Bound<'_, PyAny>) -> Option<Device>;

/// The context of capsules with a table of ours: a unique address.
pub(crate) fn capsule_context() -> *mut c_void {
    static MARK: AtomicBool = AtomicBool::new(false);
    MARK.as_ptr().cast()
}

/// The table of a class.
pub(crate) struct ClassTable {
    pub(crate) api: &'static DLPackExchangeAPI,
    /// The device function, if this is a table of ours.
    pub(crate) device: Option<DeviceOf>,
    /// The address of the class that defines the table, if this is a table of ours; else 0.
    class: usize,
}

/// The table of another library's class, if it has one in a version that we can read.
// XAP-27
pub(crate) fn table_of_class(class: &Bound<'_, PyType>) -> Option<ClassTable> {
    let name = intern!(class.py(), TABLE);
    ClassTable::read_capsule(&class_attribute(class, name)?)
}

/// The table for importing objects of a class, and the states that it does not check; `None` if `__dlpack__` must be called.
///
/// Python classes inherit the table of their base class in C or Rust. A class that overrides `__dlpack__`, but not the table,
/// expects its method to be called.
pub(crate) fn table_for_import(class: &Bound<'_, PyType>) -> Option<(ClassTable, Unchecked)> {
    let py = class.py();
    let capsule = class_attribute(class, intern!(py, TABLE))?;
    let table = ClassTable::read_capsule(&capsule)?;
    if table.class == class.as_ptr().addr() {
        return Some((table, Unchecked::Nothing));
    }
    let Some(method) = class_attribute(class, intern!(py, METHOD)) else {
        return Some((table, Unchecked::Nothing));
    };
    let known = |pair: &&TableAndMethod| pair.table.is(&capsule) && pair.method.is(&method);
    let mut pairs = cache_entries(&capsule).map_while(|place| place.get(py));
    let unchecked = match pairs.find(known) {
        Some(pair) => pair.unchecked,
        None => find_pair_in_bases(class, capsule, method)?,
    };
    Some((table, unchecked))
}

/// States of an object that an exchange table does not check, although `__dlpack__` does (or should).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchecked {
    Nothing,
    OfTorch,
    OfPaddle,
}

impl Unchecked {
    /// The states that the table of this class does not check.
    #[cold]
    fn for_defining_class(class: &Bound<'_, PyType>) -> Self {
        if torch::is_tensor_class(class) {
            Self::OfTorch
        } else if paddle::is_tensor_class(class) {
            Self::OfPaddle
        } else {
            Self::Nothing
        }
    }
}

/// The class attribute that holds the table.
const TABLE: &str = abi::ATTRIBUTE_EXCHANGE_API;
/// The method that the table replaces.
const METHOD: &str = "__dlpack__";

/// A table and a method that are defined by one class, so that the table does what the method does.
struct TableAndMethod {
    table: Py<PyAny>,
    method: Py<PyAny>,
    unchecked: Unchecked,
}

/// Cache of the pairs that were found, indexed by [`cache_entries`]. If all entries for a table are taken, the class is searched
/// at each import.
static PAIR_CACHE: [PyOnceLock<TableAndMethod>; 16] = [const { PyOnceLock::new() }; 16];

/// The cache entries for a table, in the order in which they are filled.
fn cache_entries(
    table: &Bound<'_, PyAny>,
) -> impl Iterator<Item = &'static PyOnceLock<TableAndMethod>> + use<> {
    // Objects are aligned to 16 bytes.
    let first = table.as_ptr().addr() / 16;
    (first..first + 4).map(|index| &PAIR_CACHE[index % PAIR_CACHE.len()])
}

/// What the table does not check; `None` if a class earlier in the MRO than the one with the table defines the method.
#[cold]
fn find_pair_in_bases(
    class: &Bound<'_, PyType>,
    table: Bound<'_, PyAny>,
    method: Bound<'_, PyAny>,
) -> Option<Unchecked> {
    let py = class.py();
    for base in classes_in_mro(class) {
        let attributes = base.getattr(intern!(py, "__dict__"));
        let attributes = attributes.map_err(|error| discard_error(py, error)).ok()?;
        let defines = |name| {
            let found = attributes.contains(name);
            found.unwrap_or_else(|error| {
                discard_error(py, error);
                false
            })
        };
        let (has_table, has_method) = (defines(TABLE), defines(METHOD));
        if has_table {
            let unchecked = Unchecked::for_defining_class(&base);
            if has_method {
                let places = cache_entries(&table);
                let mut pair = Some(TableAndMethod {
                    table: table.unbind(),
                    method: method.unbind(),
                    unchecked,
                });
                for place in places {
                    let put = pair.take();
                    let Some(put) = put else { break };
                    pair = place.set(py, put).err();
                }
            }
            return Some(unchecked);
        }
        if has_method {
            return None;
        }
    }
    Some(Unchecked::Nothing)
}

impl ClassTable {
    /// Reads the attribute.
    fn read_capsule(capsule: &Bound<'_, PyAny>) -> Option<Self> {
        let capsule = capsule.cast::<PyCapsule>().ok()?;
        let table = capsule.pointer_checked(Some(NAME));
        let table = table.map_err(|error| discard_error(capsule.py(), error));
        let table = table.ok()?.as_ptr();
        let mut header: *mut DLPackExchangeAPIHeader = table.cast();
        // A chain of more than 8 older versions is a cycle.
        for _ in 0..8 {
            if !header.is_aligned() {
                return None;
            }
            // SAFETY: not null and aligned, as checked. Tables live for the rest of the process, and start with their header.
            let found = unsafe { header.as_ref() }?;
            if found.version.major == abi::DLPACK_MAJOR_VERSION {
                // SAFETY: a table of this major version starts with the header.
                let api = unsafe { header.cast::<DLPackExchangeAPI>().as_ref() }?;
                let ours = capsule
                    .context()
                    .is_ok_and(|context| context == capsule_context());
                // SAFETY: only `OwnTable::install_on_class` marks capsules, around an `OwnTable` that lives for the rest of the
                // process.
                let own = ours.then(|| unsafe { &*table.cast::<OwnTable>() });
                return Some(Self {
                    api,
                    device: own.map(|own| own.device),
                    class: own.map_or(0, |own| own.class),
                });
            }
            header = found.prev_api;
        }
        None
    }
}
