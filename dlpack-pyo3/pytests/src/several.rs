//! Classes with several tensors, with columns, and with an owner that outlives the object.

use std::panic::catch_unwind;
use std::sync::Arc;

use dlpack_pyo3::{Buffer, DLPack, Loan, Record, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

/// One row of [`Tables`].
#[derive(Record)]
#[repr(C)]
struct Trade {
    /// What was paid.
    ///
    ///   in "euros"
    price: f64,
    size: u32,
    side: u32,
}

/// A tensor, with two more tensors by name.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Batch {
    #[dlpack(data)]
    observations: Vec<f32>,
    /// One for each step.
    #[dlpack(tensor)]
    rewards: Vec<f64>,
    #[dlpack(tensor(name = "mask", shape = [_, 2], elem = bool))]
    flags: Vec<u8>,
    #[dlpack(tensor)]
    absent: Option<Vec<f32>>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {
    #[new]
    fn new(len: u8) -> Self {
        let numbers = 0..len;
        Self {
            observations: numbers.clone().map(f32::from).collect(),
            rewards: numbers.clone().map(|n| -f64::from(n)).collect(),
            flags: numbers.flat_map(|n| [n % 2, 1]).collect(),
            absent: None,
            _alive: Alive::new(),
        }
    }

    fn push(&mut self) {
        self.rewards.push(0.0);
    }
}

/// A base class with a tensor, and a getter.
#[pyclass(frozen, subclass, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Base {
    #[dlpack(tensor)]
    first: Vec<u8>,
}

#[dlpack_pymethods]
#[pymethods]
impl Base {
    #[getter]
    fn second(&self) -> u8 {
        self.first[0]
    }
}

/// A class with tensors of the same names as attributes of its base class, and as an attribute of `type`.
#[pyclass(frozen, extends = Base, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Derived {
    #[dlpack(tensor)]
    first: Vec<u8>,
    #[dlpack(tensor)]
    second: Vec<u8>,
    #[dlpack(tensor)]
    mro: Vec<u8>,
}

#[dlpack_pymethods]
#[pymethods]
impl Derived {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        let (first, second, mro) = (vec![2], vec![3], vec![4]);
        let base = PyClassInitializer::from(Base { first: vec![1] });
        base.add_subclass(Self { first, second, mro })
    }
}

/// No tensor itself, but columns of records, and one tensor by name.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Tables {
    #[dlpack(columns)]
    trades: Vec<Trade>,
    #[dlpack(tensor)]
    times: Vec<i64>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Tables {
    #[new]
    fn new(len: u8) -> Self {
        let trade = |n| Trade {
            price: f64::from(n) / 2.0,
            size: u32::from(n),
            side: u32::from(n % 2),
        };
        Self {
            trades: (0..len).map(trade).collect(),
            times: (0..len).map(i64::from).collect(),
            _alive: Alive::new(),
        }
    }
}

/// Memory that is not a Python object.
struct Home {
    items: Vec<f32>,
    _alive: Alive,
}

impl Buffer for Home {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.items[..])
    }
}

/// Looks like a reference-counted handle, but a clone has its own memory.
#[derive(Clone)]
struct Copies(Vec<f32>);

impl Buffer for Copies {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.0[..])
    }
}

/// A class whose exports fail.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Copying {
    #[dlpack(data, owner)]
    items: Copies,
}

#[dlpack_pymethods]
#[pymethods]
impl Copying {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        Self {
            items: Copies(items),
        }
    }
}

/// Its exports keep the `Arc` and not the object, so that the deleter does not need Python.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Owned {
    #[dlpack(data, owner)]
    home: Arc<Home>,
}

#[dlpack_pymethods]
#[pymethods]
impl Owned {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self {
            home: Arc::new(Home { items, _alive }),
        }
    }

    /// The number of references to the memory.
    fn owners(&self) -> usize {
        Arc::strong_count(&self.home)
    }

    /// Replaces the memory; exports keep the old one.
    fn replace(&mut self, items: Vec<f32>) {
        *self = Self::new(items);
    }
}

/// A class with attributes that are NumPy arrays.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Ledger {
    #[dlpack(columns)]
    trades: Vec<Trade>,
    /// In order.
    #[dlpack(tensor)]
    times: Vec<i64>,
    #[dlpack(tensor)]
    absent: Option<Vec<f32>>,
    /// A user-defined attribute.
    #[pyo3(get)]
    list: Vec<u32>,
    _alive: Alive,
}

/// PyO3's getter for the field would hide its tensor.
#[pyclass(frozen, get_all, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Hidden {
    #[dlpack(tensor)]
    seen: Vec<u32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Hidden {}

/// Creates the class, which is in no module because its module could not be imported.
#[pyfunction]
pub(crate) fn create_hidden_class(py: Python<'_>) -> PyResult<()> {
    PyModule::new(py, "hidden")?.add_class::<Hidden>()
}

/// Whether a getter of this name is refused beside tensors of these names. The macros ask it when a class is compiled.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "the type of an argument")]
pub(crate) fn getter_hides_tensor(tensors: Vec<String>, getter: &str) -> bool {
    let tensors: Vec<&str> = tensors.iter().map(|name| &**name).collect();
    let check = || dlpack_pyo3::__private0::reject_hidden_tensor(&tensors, getter);
    catch_unwind(check).is_err()
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl Ledger {
    #[new]
    fn new(len: u8) -> Self {
        Self {
            trades: Tables::new(len).trades,
            times: (0..len).map(i64::from).collect(),
            absent: None,
            list: vec![1, 2],
            _alive: Alive::new(),
        }
    }

    fn push(&mut self) {
        self.times.push(0);
    }
}

/// A class with attributes that are NumPy arrays: some keep only a field, one keeps the object.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Arena {
    #[dlpack(tensor(owner))]
    state: SharedBuffer<f32>,
    #[dlpack(tensor(owner))]
    rules: Arc<[u16]>,
    #[dlpack(tensor)]
    scores: SharedBuffer<f64>,
    _alive: Alive,
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl Arena {
    #[new]
    fn new(len: usize) -> PyResult<Self> {
        Ok(Self {
            state: SharedBuffer::zeroed(len)?,
            rules: vec![7; len].into(),
            scores: SharedBuffer::zeroed(len)?,
            _alive: Alive::new(),
        })
    }

    /// The number of references to the rules.
    fn count_of_rules(&self) -> usize {
        Arc::strong_count(&self.rules)
    }

    fn step(&mut self) {
        for place in 0..self.state.len() {
            self.state.set(place, self.state.get(place) + 1.0);
        }
    }

    fn replace_state(&mut self) -> PyResult<()> {
        self.state = SharedBuffer::zeroed(1)?;
        Ok(())
    }
}

/// A tensor with attributes that are arrays of a library which is not installed.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Foreigner {
    #[dlpack(data)]
    items: Vec<f32>,
    #[dlpack(tensor)]
    more: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods(arrays = "library_of_the_test.deeper")]
#[pymethods]
impl Foreigner {
    #[new]
    fn new() -> Self {
        Self {
            items: vec![1.0],
            more: vec![2.0, 3.0],
            _alive: Alive::new(),
        }
    }
}

/// Can run while arrays over its buffers live: they keep the buffers, not the object.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Simulation {
    #[dlpack(tensor(owner))]
    state: SharedBuffer<f32>,
    #[dlpack(tensor, owner)]
    reward: SharedBuffer<f64>,
    #[dlpack(tensor)]
    seeds: Vec<u32>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Simulation {
    #[new]
    fn new(len: usize) -> PyResult<Self> {
        Ok(Self {
            state: SharedBuffer::zeroed(len)?,
            reward: SharedBuffer::zeroed(len)?,
            seeds: vec![7; len],
            _alive: Alive::new(),
        })
    }

    fn step(&mut self) {
        for place in 0..self.state.len() {
            self.state.set(place, self.state.get(place) + 1.0);
            self.reward.set(place, self.reward.get(place) - 1.0);
        }
        self.seeds.push(0);
    }
}
