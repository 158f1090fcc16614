//! [`Greedy`]: a class that may keep the tensor of which it is made, and fail nevertheless.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dlpack_pyo3::{DLPack, Error, FromDLPack, Managed, SharedBuffer, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::alive::Alive;

/// What was kept of a tensor.
enum Kept {
    Tensor(Managed),
    Buffer(SharedBuffer<f32>),
}

/// What to keep of the next tensor, and how to end.
static NEXT: Mutex<(Keep, End)> = Mutex::new((Keep::Nothing, End::Well));
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Nothing,
    Tensor,
    Buffer,
    /// The panic's payload keeps the tensor.
    Payload,
    /// The payload of a second panic, raised when the first payload is dropped, keeps the tensor.
    Hidden,
}

#[derive(Clone, Copy)]
enum End {
    Well,
    Error,
    Panic,
    /// A panic whose payload panics when it is dropped.
    Bomb,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Panics when it is dropped, with the tensor as payload if that must keep it.
struct Bomb {
    tensor: Option<Managed>,
    hides: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.hides {
            std::panic::panic_any(self.tensor.take());
        }
        std::panic::panic_any(());
    }
}

/// Keeps what `next` has set.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Greedy {
    #[dlpack(data)]
    values: SharedBuffer<f32>,
    _alive: Alive,
}

impl FromDLPack for Greedy {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        let (keep, end) = *locked(&NEXT);
        let mut thrown = None;
        let values = match keep {
            Keep::Buffer | Keep::Nothing => {
                let values = SharedBuffer::from_dlpack(tensor)?;
                if keep == Keep::Buffer {
                    locked(&KEPT).push(Kept::Buffer(values.clone()));
                }
                values
            }
            Keep::Tensor => {
                locked(&KEPT).push(Kept::Tensor(tensor));
                SharedBuffer::zeroed(6)?
            }
            Keep::Payload | Keep::Hidden => {
                thrown = Some(tensor);
                SharedBuffer::zeroed(6)?
            }
        };
        match end {
            End::Well => Ok(Self {
                values,
                _alive: Alive::new(),
            }),
            End::Error => Err(Error::ReadOnly),
            End::Panic => std::panic::panic_any(thrown),
            End::Bomb => std::panic::panic_any(Bomb {
                tensor: thrown,
                hides: keep == Keep::Hidden,
            }),
        }
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Greedy {
    /// Sets what to do with the next tensor.
    #[staticmethod]
    fn next(keep: &str, end: &str) -> PyResult<()> {
        let keep = match keep {
            "nothing" => Keep::Nothing,
            "tensor" => Keep::Tensor,
            "buffer" => Keep::Buffer,
            "payload" => Keep::Payload,
            "hidden" => Keep::Hidden,
            _ => return Err(PyValueError::new_err("keep what?")),
        };
        let end = match end {
            "well" => End::Well,
            "error" => End::Error,
            "panic" => End::Panic,
            "bomb" => End::Bomb,
            _ => return Err(PyValueError::new_err("end how?")),
        };
        // An allocation that fails later is then not that of this list.
        locked(&KEPT).reserve(1);
        *locked(&NEXT) = (keep, end);
        Ok(())
    }

    /// The values of each tensor that is kept.
    #[staticmethod]
    fn kept() -> PyResult<Vec<Vec<f32>>> {
        let values = |kept: &Kept| match kept {
            Kept::Tensor(tensor) => tensor.view().to_vec(),
            Kept::Buffer(buffer) => Ok(buffer.to_vec()),
        };
        let kept: Result<_, _> = locked(&KEPT).iter().map(values).collect();
        Ok(kept?)
    }

    #[staticmethod]
    fn let_go() {
        let kept = core::mem::take(&mut *locked(&KEPT));
        drop(kept);
    }
}
