//! Classes whose own code panics, or calls back into Python, when the library calls it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use dlpack_pyo3::{
    Buffer, DLPack, Descriptor, Error, Loan, Protocol, SharedBuffer, dlpack_pymethods,
};
use pyo3::prelude::*;

use crate::alive::Alive;

/// Its `describe` panics after a call of `arm`.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = [self.len()])]
pub(crate) struct PanicInDescribe {
    #[dlpack(data)]
    items: Vec<f32>,
    armed: AtomicBool,
    _alive: Alive,
}

impl PanicInDescribe {
    fn len(&self) -> usize {
        assert!(!self.armed.load(Ordering::SeqCst), "a panic on purpose");
        self.items.len()
    }
}

#[dlpack_pymethods]
#[pymethods]
impl PanicInDescribe {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        Self {
            items,
            armed: AtomicBool::new(false),
            _alive: Alive::new(),
        }
    }

    fn arm(&self, armed: bool) {
        self.armed.store(armed, Ordering::SeqCst);
    }
}

/// Its `describe` panics, and its device is known only from that.
#[pyclass(frozen, module = "dlpack_probe")]
pub(crate) struct PanicByHand;

impl DLPack for PanicByHand {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        std::panic::panic_any(Bomb)
    }
}

#[pymethods]
impl PanicByHand {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name that DLPack gives it")]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new();

    #[new]
    fn new() -> Self {
        Self
    }
}

/// Panics when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a panic on purpose");
    }
}

/// The drop of the object panics.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct PanicInDrop {
    #[dlpack(data)]
    items: Vec<f32>,
    _bomb: Bomb,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl PanicInDrop {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        Self {
            items,
            _bomb: Bomb,
            _alive: Alive::new(),
        }
    }
}

struct Home {
    items: Vec<f32>,
    /// The payload panics when it is dropped.
    again: bool,
    _alive: Alive,
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.again {
            std::panic::panic_any(Bomb);
        }
        panic!("a panic on purpose");
    }
}

impl Buffer for Home {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.items[..])
    }
}

/// The drop of the memory panics, which may happen in a deleter.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct PanicInOwner {
    #[dlpack(data, owner)]
    home: Arc<Home>,
}

#[dlpack_pymethods]
#[pymethods]
impl PanicInOwner {
    #[new]
    #[pyo3(signature = (items, *, again=false))]
    fn new(items: Vec<f32>, again: bool) -> Self {
        let home = Home {
            items,
            again,
            _alive: Alive::new(),
        };
        Self {
            home: Arc::new(home),
        }
    }
}

/// Calls `function` when it is dropped, and ignores its exceptions.
struct OnDrop(Py<PyAny>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let called = Python::try_attach(|py| self.0.call0(py).map(drop));
        if let Some(Err(error)) = called {
            Python::try_attach(|py| error.print(py));
        }
    }
}

/// Calls Python code during an export, and when it is dropped.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = [self.call_back()])]
pub(crate) struct Reentrant {
    #[dlpack(data)]
    items: SharedBuffer<f32>,
    during: Py<PyAny>,
    _after: OnDrop,
    _alive: Alive,
}

impl Reentrant {
    fn call_back(&self) -> usize {
        // An exception would stay set, so it is printed.
        let called = Python::try_attach(|py| self.during.call0(py).map(drop));
        if let Some(Err(error)) = called {
            Python::try_attach(|py| error.print(py));
        }
        self.items.len()
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Reentrant {
    #[new]
    fn new(items: Vec<f32>, during: Py<PyAny>, after: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            items: SharedBuffer::copied_from(&items)?,
            during,
            _after: OnDrop(after),
            _alive: Alive::new(),
        })
    }
}
