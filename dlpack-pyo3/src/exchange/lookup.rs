//! Exchange tables of classes, ours and others': what marks one of ours, how one is found, and whether a class that
//! inherits it overrides the method for which it stands.
#![expect(unsafe_code, reason = "reads tables of C functions")]

use core::ffi::{CStr, c_void};
use core::sync::atomic::AtomicBool;

use dlpack_core::Device;
use dlpack_core::abi::{self, DLPackExchangeAPI, DLPackExchangeAPIHeader};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::error::forget_error;
use crate::hidden::class_attribute;
use crate::library::{paddle, torch};

/// The name of the capsule.
// XAP-02
pub(crate) const NAME: &CStr = abi::CAPSULE_EXCHANGE_API;

/// A table of ours, and what only we ask it.
#[repr(C)]
pub(crate) struct OwnTable {
    pub(crate) api: DLPackExchangeAPI,
    pub(crate) device: DeviceOf,
    /// The address of the class that defines it, 0 until it is installed.
    pub(crate) class: usize,
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
    /// The address of the class that defines it, if it is one of ours, else 0.
    class: usize,
}

/// The table of somebody else's class, if it has one that we can read.
// XAP-27
pub(crate) fn of_class(class: &Bound<'_, PyType>) -> Option<ClassTable> {
    let name = intern!(class.py(), TABLE);
    ClassTable::read(&class_attribute(class, name)?)
}

/// The table by which objects of a class are imported, and what it does not check; nothing where `__dlpack__` is to be called.
///
/// Python classes inherit the table of a class in C or Rust. One that defines a `__dlpack__` of its own, but no table,
/// means that its method is called.
pub(crate) fn for_import(class: &Bound<'_, PyType>) -> Option<(ClassTable, Unchecked)> {
    let py = class.py();
    let capsule = class_attribute(class, intern!(py, TABLE))?;
    let table = ClassTable::read(&capsule)?;
    if table.class == class.as_ptr().addr() {
        return Some((table, Unchecked::Nothing));
    }
    let Some(method) = class_attribute(class, intern!(py, METHOD)) else {
        return Some((table, Unchecked::Nothing));
    };
    let known = |pair: &&Pair| pair.table.is(&capsule) && pair.method.is(&method);
    let mut pairs = places(&capsule).map_while(|place| place.get(py));
    let unchecked = match pairs.find(known) {
        Some(pair) => pair.unchecked,
        None => pair_in_bases(class, capsule, method)?,
    };
    Some((table, unchecked))
}

/// Which states of an object an exchange table does not look at, though the method does, or should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchecked {
    Nothing,
    OfTorch,
    OfPaddle,
}

impl Unchecked {
    /// Of the table that a class defines.
    #[cold]
    fn by(class: &Bound<'_, PyType>) -> Self {
        if torch::is_tensor_class(class) {
            Self::OfTorch
        } else if paddle::is_tensor_class(class) {
            Self::OfPaddle
        } else {
            Self::Nothing
        }
    }
}

/// The attribute of a class that holds its table.
const TABLE: &str = "__dlpack_c_exchange_api__";
/// The method for which the table stands.
const METHOD: &str = "__dlpack__";

/// A table and a method that one class defines, so the table does what the method does.
struct Pair {
    table: Py<PyAny>,
    method: Py<PyAny>,
    unchecked: Unchecked,
}

/// The pairs that were found, each at one of its [`places`]. A class whose pair finds no place there is searched at each import.
static PAIRS: [PyOnceLock<Pair>; 64] = [const { PyOnceLock::new() }; 64];

/// The places of the pair with this table, which are filled in this order.
fn places(table: &Bound<'_, PyAny>) -> impl Iterator<Item = &'static PyOnceLock<Pair>> + use<> {
    // Objects lie at multiples of 16 bytes.
    let first = table.as_ptr().addr() / 16;
    (first..first + 4).map(|index| &PAIRS[index % PAIRS.len()])
}

/// What the table does not look at; nothing, if a class nearer than the one that defines the table defines the method.
#[cold]
fn pair_in_bases(
    class: &Bound<'_, PyType>,
    table: Bound<'_, PyAny>,
    method: Bound<'_, PyAny>,
) -> Option<Unchecked> {
    let py = class.py();
    for base in class.mro() {
        let base = base.cast_into::<PyType>().ok()?;
        let attributes = base.getattr(intern!(py, "__dict__"));
        let attributes = attributes.map_err(|error| forget_error(py, error)).ok()?;
        let defines = |name| {
            let found = attributes.contains(name);
            found.unwrap_or_else(|error| {
                forget_error(py, error);
                false
            })
        };
        let (has_table, has_method) = (defines(TABLE), defines(METHOD));
        if has_table {
            let unchecked = Unchecked::by(&base);
            if has_method {
                let places = places(&table);
                let mut pair = Some(Pair {
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
    /// What is in such an attribute.
    fn read(capsule: &Bound<'_, PyAny>) -> Option<Self> {
        let capsule = capsule.cast::<PyCapsule>().ok()?;
        let table = capsule.pointer_checked(Some(NAME));
        let table = table.map_err(|error| forget_error(capsule.py(), error));
        let table = table.ok()?.as_ptr();
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
                // SAFETY: only `install` marks capsules, around such tables, which live for ever.
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
