//! Producers that make mistakes in one field after another, in millions of cases: their capsules and exchange tables; and
//! prototypes for our allocator.
#![expect(
    unsafe_code,
    reason = "makes C structs by hand, and calls the functions of tables as C code does"
)]

#[path = "../../../dlpack-core/tests/dice/mod.rs"]
mod dice;
#[path = "../../../dlpack-core/tests/forgery/mod.rs"]
mod forgery;
#[path = "../../../dlpack-core/tests/made/mod.rs"]
mod made;

use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{NonNull, null_mut, with_exposed_provenance};

use dlpack_pyo3::abi::{
    CAPSULE_EXCHANGE_API, CAPSULE_LEGACY, CAPSULE_VERSIONED, DLManagedTensor,
    DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};
use dlpack_pyo3::{Imported, Numpy, Tensor, from_dlpack, inspect};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::annotated::{Adopted, Points};
use dice::{Dice, play};
use forgery::{BYTES, Forgery, Struct, Verdict, look};

/// A capsule that owns the tensor.
fn capsule(py: Python<'_>, tensor: Struct) -> Bound<'_, PyAny> {
    let (pointer, name): (NonNull<c_void>, _) = match tensor {
        Struct::Versioned(tensor) => (tensor.cast(), CAPSULE_VERSIONED),
        Struct::Legacy(tensor) => (tensor.cast(), CAPSULE_LEGACY),
    };
    // SAFETY: the pointer is not null, the name is static, and the destructor fits both.
    let capsule = unsafe { ffi::PyCapsule_New(pointer.as_ptr(), name.as_ptr(), Some(unconsumed)) };
    // SAFETY: `PyCapsule_New` returned a new reference.
    unsafe { Bound::from_owned_ptr(py, capsule) }
}

/// Destructor: calls the deleter of an unconsumed tensor.
unsafe extern "C" fn unconsumed(capsule: *mut ffi::PyObject) {
    let pointer = |name: &CStr| {
        // SAFETY: the argument is a capsule; the call sets no exception.
        let is_named = unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 1;
        // SAFETY: the capsule has this name.
        is_named.then(|| unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) })
    };
    if let Some(tensor) = pointer(CAPSULE_VERSIONED).and_then(NonNull::new) {
        // SAFETY: `capsule` put the pointer into the capsule, and no consumer has renamed it.
        unsafe { DLManagedTensorVersioned::release(tensor.cast()) };
    } else if let Some(tensor) = pointer(CAPSULE_LEGACY).and_then(NonNull::new) {
        // SAFETY: `capsule` put the pointer into the capsule, and no consumer has renamed it.
        unsafe { DLManagedTensor::release(tensor.cast()) };
    }
}

thread_local! {
    /// The tensor that producers of this thread export next, and those that they have exported.
    static NEXT: RefCell<Option<Forgery>> = const { RefCell::new(None) };
    static EXPORTS: RefCell<Vec<Struct>> = const { RefCell::new(Vec::new()) };
}

fn make_next() -> Struct {
    let tensor = NEXT.with_borrow(|next| next.as_ref().expect("a case is played").make());
    EXPORTS.with_borrow_mut(|exports| exports.push(tensor));
    tensor
}

/// Exports the next forged tensor by its method.
#[pyclass(frozen, subclass, module = "dlpack_probe")]
struct Crafty;

#[pymethods]
impl Crafty {
    #[pyo3(signature = (**_keywords))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        _keywords: Option<Bound<'_, PyAny>>,
    ) -> Bound<'py, PyAny> {
        capsule(py, make_next())
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        NEXT.with_borrow(|next| {
            let device = next.as_ref().expect("a case is played").foreign.device;
            (device.device_type, device.device_id)
        })
    }
}

/// Exports the next forged tensor by its exchange table, too.
#[pyclass(frozen, extends = Crafty, module = "dlpack_probe")]
struct CraftyTable;

unsafe extern "C" fn from_object(_: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    let Struct::Versioned(tensor) = make_next() else {
        unreachable!("legacy tensors have no table")
    };
    // SAFETY: a consumer passes a writable pointer for the result.
    unsafe { out.write(tensor.as_ptr()) };
    0
}

#[pymethods]
impl CraftyTable {
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static TABLE: Table = Table(DLPackExchangeAPI {
            header: DLPackExchangeAPIHeader {
                version: DLPackVersion { major: 1, minor: 3 },
                prev_api: null_mut(),
            },
            managed_tensor_allocator: None,
            managed_tensor_from_py_object_no_sync: Some(from_object),
            managed_tensor_to_py_object_no_sync: None,
            dltensor_from_py_object_no_sync: None,
            current_work_stream: None,
        });
        let table = (&raw const TABLE.0).cast_mut().cast();
        // SAFETY: the table and the name are static.
        let capsule = unsafe { ffi::PyCapsule_New(table, CAPSULE_EXCHANGE_API.as_ptr(), None) };
        // SAFETY: `PyCapsule_New` returned a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
    }
}

struct Table(DLPackExchangeAPI);

// SAFETY: the table has function pointers and a null pointer, and is never changed.
unsafe impl Sync for Table {}

/// Runs the cases. Prints no panics, unless a single case is repeated.
fn quietly(seed: u64, cases: u64, case: impl FnMut(&mut Dice)) -> (u64, Option<String>) {
    if cases == 1 {
        return play(seed, cases, case);
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = play(seed, cases, case);
    std::panic::set_hook(hook);
    outcome
}

/// Imports this many forged tensors by all public functions in turn. Returns how many went wrong, and the first of them. `tables`
/// are the addresses of our exchange tables, the first of a class without `FromDLPack`.
#[pyfunction]
pub(crate) fn forge_capsules(
    py: Python<'_>,
    seed: u64,
    cases: u64,
    tables: Vec<usize>,
) -> PyResult<(u64, Option<String>)> {
    let producers = [
        Py::new(py, Crafty)?.into_bound(py).into_any(),
        Py::new(py, (CraftyTable, Crafty))?
            .into_bound(py)
            .into_any(),
    ];
    let mut memory = forgery::memory();
    let start = memory.as_mut_ptr().cast::<u8>();
    let outcome = quietly(seed, cases, |dice| {
        let forgery = Forgery::draw(dice, start);
        // SAFETY: `memory` outlives the slice; consumers write only the values that are already there.
        let memory = unsafe { core::slice::from_raw_parts(start, BYTES) };
        NEXT.set(Some(forgery.clone()));
        import(py, &forgery, memory, &producers, &tables, dice);
        let exports = EXPORTS.take();
        let deleted = forgery.foreign.deleted.times();
        if forgery.foreign.has_deleter {
            assert_eq!(deleted, exports.len(), "deleters that ran: {forgery:?}");
        } else {
            // SAFETY: the struct has no deleter, and every import is gone.
            exports.iter().for_each(|tensor| unsafe { tensor.free() });
        }
    });
    NEXT.set(None);
    Ok(outcome)
}

/// Imports the object into a type of ours, and drops that. PyO3 allocates nothing for the argument and the result.
#[pyfunction]
pub(crate) fn import_into(object: &Bound<'_, PyAny>, adopts: bool) -> PyResult<()> {
    if adopts {
        object.extract::<Imported<Adopted>>().map(drop)
    } else {
        object.extract::<Imported<Points>>().map(drop)
    }
}

/// A NumPy array over the object, by the result type. PyO3 allocates nothing for the argument.
#[pyfunction]
pub(crate) fn numpy_over<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    Numpy(from_dlpack(object)?).into_pyobject(object.py())
}

fn import(
    py: Python<'_>,
    forgery: &Forgery,
    memory: &[u8],
    producers: &[Bound<'_, PyAny>; 2],
    tables: &[usize],
    dice: &mut Dice,
) {
    // A tensor that claims memory which does not exist may be imported, but is not read.
    let is_honest = forgery.is_honest(memory) && !forgery.is_long();
    let producer = &producers[if forgery.legacy { 0 } else { dice.below(2) }];
    match dice.below(if is_honest { 8 } else { 6 }) {
        0 => {
            let imported = from_dlpack(&capsule(py, make_next()));
            let managed = judged(imported, forgery);
            if let Some(managed) = managed.filter(|_| is_honest) {
                look(&managed, memory);
            }
        }
        1 => {
            let managed = judged(from_dlpack(producer), forgery);
            if let Some(managed) = managed.filter(|_| is_honest) {
                look(&managed, memory);
            }
        }
        2 => {
            let tensor = producer.extract::<Tensor>();
            drop(judged(tensor, forgery));
        }
        3 => {
            let text = inspect(producer).expect("whatever it is, it can be described");
            assert!(!text.is_empty());
        }
        4 if !forgery.legacy => through_table(py, forgery, tables[0]),
        5 if !forgery.legacy => through_table(py, forgery, tables[dice.below(tables.len())]),
        4 | 5 => drop(producer.extract::<Imported<Adopted>>()),
        6 => {
            let points = producer.extract::<Imported<Points>>();
            let fits = forgery.foreign.shape.as_ref().map(Vec::len) == Some(2);
            assert!(points.is_err() || fits, "no points: {forgery:?}");
        }
        _ => {
            let adopted = producer.extract::<Imported<Adopted>>();
            if let Ok(adopted) = adopted.map(|adopted| Py::new(py, adopted.0)) {
                drop(adopted.and_then(|adopted| from_dlpack(adopted.bind(py).as_any())));
            }
        }
    }
}

/// The import, if it agrees with the verdict. For managed memory the import waits for the driver, which may fail.
fn judged<T>(imported: PyResult<T>, forgery: &Forgery) -> Option<T> {
    let waits = forgery.foreign.device.device_type == 13;
    match (forgery.verdict(), &imported) {
        (Verdict::Refused(why), Ok(_)) => panic!("taken in spite of {why}: {forgery:?}"),
        (Verdict::Taken, Err(error)) if !waits => panic!("refused by {error}: {forgery:?}"),
        _ => {}
    }
    imported.ok()
}

/// Makes an object of the tensor by `managed_tensor_to_py_object_no_sync`. A refused tensor still belongs to the caller.
fn through_table(py: Python<'_>, forgery: &Forgery, table: usize) {
    let Struct::Versioned(tensor) = make_next() else {
        unreachable!("not of a legacy tensor")
    };
    let table = with_exposed_provenance::<DLPackExchangeAPI>(table);
    // SAFETY: Python passes the address that a class of this module publishes.
    let function = unsafe { &*table }.managed_tensor_to_py_object_no_sync;
    let mut out = null_mut();
    // SAFETY: this thread is attached, the struct's lists are as long as it says, and `out` is writable.
    let status = unsafe { function.expect("ours has it")(tensor.as_ptr(), &raw mut out) };
    if status == 0 {
        let refused = matches!(forgery.verdict(), Verdict::Refused(_));
        assert!(!refused, "taken: {forgery:?}");
        // SAFETY: the function wrote a new reference.
        let object = unsafe { Bound::from_owned_ptr(py, out.cast::<ffi::PyObject>()) };
        drop(object);
        return;
    }
    let error = PyErr::take(py);
    assert!(error.is_some(), "-1 without an exception");
    let deleted = forgery.foreign.deleted.times();
    assert_eq!(deleted, 0, "refused and released: {forgery:?}");
    // SAFETY: the function failed, so the tensor still belongs to this caller.
    unsafe { DLManagedTensorVersioned::release(tensor) };
}

/// Calls the allocator of a table for this many forged prototypes.
#[pyfunction]
pub(crate) fn forge_prototypes(seed: u64, cases: u64, table: usize) -> (u64, Option<String>) {
    let table = with_exposed_provenance::<DLPackExchangeAPI>(table);
    // SAFETY: Python passes the address that a class of this module publishes.
    let table = unsafe { &*table };
    let allocate = table.managed_tensor_allocator.expect("ours has it");
    let mut memory = forgery::memory();
    let start = memory.as_mut_ptr().cast::<u8>();
    let outcome = quietly(seed, cases, |dice| {
        let mut forgery = Forgery::draw(dice, start);
        // A prototype has neither of these.
        (forgery.legacy, forgery.foreign.flags) = (false, 0);
        let Some(verdict) = judge_prototype(&forgery) else {
            return;
        };
        let Struct::Versioned(prototype) = forgery.make() else {
            unreachable!("not a legacy tensor")
        };
        let (mut out, mut errors) = (null_mut(), 0_u32);
        let set_error = (dice.below(4) != 0).then_some(count as SetError);
        // SAFETY: the struct was just made, so it is live.
        let tensor = unsafe { &raw mut (*prototype.as_ptr()).dl_tensor };
        let context = (&raw mut errors).cast();
        // SAFETY: the prototype's shape is as long as it says, and `set_error` accepts this context.
        let status = unsafe { allocate(tensor, &raw mut out, context, set_error) };
        let expected = u32::from(status != 0 && set_error.is_some());
        assert_eq!(errors, expected, "errors: {forgery:?}");
        assert_eq!(status == 0, !out.is_null(), "{forgery:?}");
        assert_eq!(status == 0, verdict, "{status}: {forgery:?}");
        if let Some(out) = NonNull::new(out) {
            check_allocated(out, &forgery);
        }
        // SAFETY: the allocator only reads the prototype, and this is its last use.
        unsafe { Struct::Versioned(prototype).free() };
    });
    drop(memory);
    outcome
}

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

unsafe extern "C" fn count(context: *mut c_void, kind: *const c_char, message: *const c_char) {
    assert!(!kind.is_null() && !message.is_null());
    // SAFETY: `context` is the counter of `forge_prototypes`.
    unsafe { *context.cast::<u32>() += 1 };
}

/// Whether the allocation must succeed; `None` if it is so large that the system decides.
fn judge_prototype(forgery: &Forgery) -> Option<bool> {
    let foreign = &forgery.foreign;
    let mut plain = forgery.clone();
    // The allocator does not read these fields.
    plain.foreign.data = core::ptr::without_provenance_mut(1 << 20);
    plain.foreign.strides = None;
    plain.foreign.byte_offset = 0;
    plain.foreign.version = (1, 3);
    let is_on_host = foreign.device.device_type == 1;
    let bits = plain.all_bits();
    match plain.verdict() {
        _ if !is_on_host => Some(false),
        Verdict::Refused("a reach of more than memory has" | "a reach out of memory") => None,
        Verdict::Refused(_) => Some(false),
        Verdict::Either => None,
        Verdict::Taken => (bits < 1 << 24).then_some(true),
    }
}

fn check_allocated(out: NonNull<DLManagedTensorVersioned>, forgery: &Forgery) {
    // SAFETY: the allocator returned the tensor, which is live.
    let tensor = unsafe { out.as_ref() }.dl_tensor;
    let DLTensor {
        data,
        ndim,
        shape,
        strides,
        ..
    } = tensor;
    let len = usize::try_from(ndim).expect("a rank");
    let list = |start: *mut i64| match len {
        0 => &[][..],
        // SAFETY: the list has as many entries as the rank says.
        _ => unsafe { core::slice::from_raw_parts(start, len) },
    };
    assert_eq!(
        list(shape),
        forgery.foreign.shape.as_deref().unwrap_or_default()
    );
    let packed = made::Foreign::new(null_mut(), forgery.foreign.dtype, list(shape)).strides;
    let is_empty = list(shape).contains(&0);
    assert!(
        is_empty || list(strides) == packed.unwrap_or_default(),
        "packed: {forgery:?}"
    );
    let bytes = if is_empty {
        0
    } else {
        forgery.all_bits().div_euclid(8)
    };
    for at in 0..usize::try_from(bytes).expect("few").min(1 << 16) {
        let at = data.cast::<u8>().wrapping_add(at);
        // SAFETY: `at` is a byte of the new memory, which no other code has.
        assert_eq!(unsafe { at.read() }, 0, "zeros");
        // SAFETY: `at` is a byte of the new memory, which no other code has.
        unsafe { at.write(1) };
    }
    // SAFETY: the allocator returned the tensor, and this is its last use.
    unsafe { DLManagedTensorVersioned::release(out) };
}
