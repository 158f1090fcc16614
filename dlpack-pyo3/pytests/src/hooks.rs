//! Classes in which every hook panics on demand, with payloads that may panic again when they are dropped.
#![expect(
    unsafe_code,
    reason = "claims memory at an address, and names the default stream"
)]

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{catch_unwind, panic_any, resume_unwind};
use std::sync::Arc;

use dlpack_pyo3::{
    AsDevice, AsOrder, Buffer, DLPack, DataType, Descriptor, Device, Error, FromDLPack, Imported,
    Loan, LoanMut, Managed, Order, Parts, ProducerStream, Protocol, StreamHandle, StreamRef,
    ViewMutDyn, Writable, dlpack_pymethods, view::Promise,
};
use pyo3::prelude::*;

use crate::alive::Alive;

/// The number of the hook that panics (0: none), and of its payload.
static ARMED: AtomicUsize = AtomicUsize::new(0);
static PAYLOAD: AtomicUsize = AtomicUsize::new(0);
static THROWN: AtomicUsize = AtomicUsize::new(0);

const HOOKS: [&str; 17] = [
    "none",
    "lend",
    "lend_mut",
    "shape",
    "strides",
    "offset",
    "order",
    "dtype",
    "device",
    "describe",
    "clone",
    "drop of a clone",
    "via",
    "from_dlpack",
    "tensor",
    "stream",
    "update",
];
const PAYLOADS: [&str; 5] = ["text", "string", "bomb", "bombs", "silent bomb"];

/// Panics when it is dropped, with another one of these as payload, this many times.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 == 0 {
            panic!("a panic on purpose");
        }
        panic_any(Bomb(self.0 - 1));
    }
}

fn hook(name: &str) {
    if HOOKS[ARMED.load(Ordering::SeqCst)] != name {
        return;
    }
    THROWN.fetch_add(1, Ordering::SeqCst);
    match PAYLOADS[PAYLOAD.load(Ordering::SeqCst)] {
        "text" => panic!("a panic on purpose"),
        "string" => panic_any(String::from("a panic on purpose")),
        "bomb" => panic_any(Bomb(0)),
        "bombs" => panic_any(Bomb(3)),
        _ => resume_unwind(Box::new(Bomb(1))),
    }
}

/// The names of the hooks and of the payloads.
#[pyfunction]
pub(crate) fn hooks() -> (Vec<&'static str>, Vec<&'static str>) {
    (HOOKS[1..].to_vec(), PAYLOADS.to_vec())
}

/// From now on only this hook panics, with this payload. An unknown name disables all.
#[pyfunction]
pub(crate) fn arm(hook: &str, payload: &str) {
    let at = |names: &[&str], name| names.iter().position(|other| *other == name);
    PAYLOAD.store(at(&PAYLOADS, payload).unwrap_or(0), Ordering::SeqCst);
    ARMED.store(at(&HOOKS, hook).unwrap_or(0), Ordering::SeqCst);
}

/// The number of panics of hooks.
#[pyfunction]
pub(crate) fn thrown() -> usize {
    THROWN.load(Ordering::SeqCst)
}

/// A user's function that panics, to show PyO3's behaviour.
#[pyfunction]
pub(crate) fn blow_up() {
    panic_any(Bomb(0));
}

struct Memory(Vec<f32>);

impl Buffer for Memory {
    fn lend(&self) -> Loan<'_> {
        hook("lend");
        Loan::from(&self.0[..])
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        hook("lend_mut");
        LoanMut::from(&mut self.0[..])
    }
}

impl Writable for Memory {}

/// Returns a device, an order or a data type, by a hook.
#[derive(Clone)]
struct Answer;

impl AsDevice for Answer {
    fn as_device(&self) -> Device {
        hook("device");
        Device::CPU
    }
}

impl AsOrder for Answer {
    fn as_order(&self) -> Order {
        hook("order");
        Order::C
    }
}

impl From<Answer> for DataType {
    fn from(_: Answer) -> Self {
        hook("dtype");
        Self::F32
    }
}

impl ProducerStream for Answer {
    fn producer_stream(&self) -> StreamRef<'_> {
        hook("stream");
        // SAFETY: the default stream lives as long as its device.
        unsafe { StreamHandle::from_raw(0) }.into()
    }
}

macro_rules! class {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $value:expr),* $(,)? }) => {
        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new() -> Self {
                Self { $($field: $value,)* _alive: Alive::new() }
            }
        }
    };
}

fn items() -> Vec<f32> {
    vec![1.0; 6]
}

/// A class with hooks in its tensor, and in a tensor by name.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    shape = { hook("shape"); [2_i64, 3] },
    strides = { hook("strides"); [3_i64, 1] },
    offset = { hook("offset"); 0_i64 },
    tensor(name = "other", data = { hook("tensor"); &self.more[..] })
)]
pub(crate) struct Hooked {
    #[dlpack(data)]
    memory: Memory,
    #[dlpack(device)]
    device: Answer,
    more: Vec<f32>,
    _alive: Alive,
}
class!(Hooked {
    memory: Memory(items()),
    device: Answer,
    more: items()
});

/// A writable class, whose order is returned by a hook.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = { hook("shape"); [2_i64, 3] })]
pub(crate) struct HookedAlone {
    #[dlpack(data, writable)]
    memory: Memory,
    #[dlpack(order)]
    order: Answer,
    _alive: Alive,
}
class!(HookedAlone {
    memory: Memory(items()),
    order: Answer
});

/// Bytes, whose data type is returned by a hook.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct HookedType {
    #[dlpack(data)]
    bytes: Vec<u8>,
    #[dlpack(dtype)]
    dtype: Answer,
    _alive: Alive,
}
class!(HookedType {
    bytes: vec![0; 64],
    dtype: Answer
});

/// A handle whose `clone` is a hook, and so is the `drop` of its clones.
struct Handle(Arc<Vec<f32>>, bool);

impl Clone for Handle {
    fn clone(&self) -> Self {
        hook("clone");
        Self(Arc::clone(&self.0), true)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.1 {
            hook("drop of a clone");
        }
    }
}

impl Buffer for Handle {
    fn lend(&self) -> Loan<'_> {
        hook("lend");
        Loan::from(&self.0[..])
    }
}

/// A class whose exports keep a clone of the handle.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct HookedOwner {
    #[dlpack(data, owner)]
    handle: Handle,
    _alive: Alive,
}
class!(HookedOwner {
    handle: Handle(Arc::new(items()), false)
});

/// A tensor that is computed for each export, by a hook.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(via = { hook("via"); self.items.clone() })]
pub(crate) struct HookedVia {
    items: Vec<f32>,
    _alive: Alive,
}
class!(HookedVia { items: items() });

/// Memory that claims to be on a GPU; its stream is returned by a hook.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    // SAFETY: the address is only passed on; no test reads there.
    unsafe(data = self.address as *const f32, len = 4),
    device = Device::cuda(0),
    stream = &self.stream,
    release = "immediate"
)]
pub(crate) struct HookedQueue {
    address: usize,
    stream: Answer,
    _alive: Alive,
}
class!(HookedQueue {
    address: 0x1000,
    stream: Answer
});

/// A class whose `describe` is a hook.
#[pyclass(frozen, module = "dlpack_probe")]
pub(crate) struct HookedByHand {
    items: Vec<f32>,
    _alive: Alive,
}

#[pymethods]
impl HookedByHand {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name that DLPack gives it")]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new();

    #[new]
    fn new() -> Self {
        Self {
            items: items(),
            _alive: Alive::new(),
        }
    }
}

impl DLPack for HookedByHand {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        hook("describe");
        Parts::new().describe(Loan::from(&self.items[..]))
    }
}

/// A class that is made of a tensor by a hook, which may panic while it owns the tensor.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct HookedWayBack {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}
class!(HookedWayBack { items: items() });

impl FromDLPack for HookedWayBack {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        hook("from_dlpack");
        let items = Vec::from_dlpack(tensor)?;
        let _alive = Alive::new();
        Ok(Self { items, _alive })
    }
}

/// Makes an object of any tensor.
#[pyfunction]
pub(crate) fn way_back(object: Imported<HookedWayBack>) -> HookedWayBack {
    object.0
}

/// No other code uses the array while a function of the tests runs.
pub(crate) struct Undisturbed;
// SAFETY: the functions with such an argument run on one thread, and call no Python that uses the array.
unsafe impl Promise for Undisturbed {}

/// Updates an array by a closure that may panic, through a view that has a lease of the memory. The panic is caught here, because
/// PyO3 would drop the payload.
#[pyfunction]
pub(crate) fn panic_in_update(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut view = object.extract::<ViewMutDyn<f32, Undisturbed>>()?;
    let update = move || {
        view.update(|element| {
            hook("update");
            element
        });
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(update)) {
        core::mem::forget(payload);
    }
    Ok(())
}
