//! Classes with tensors that can be set, and classes that can be pickled.

use dlpack_pyo3::{DLPack, FromDLPack, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

impl Default for Alive {
    fn default() -> Self {
        Self::new()
    }
}

/// Its fields can be set to arrays.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Settings {
    #[dlpack(tensor(set, shape = [rows, _]))]
    mask: Vec<bool>,
    #[dlpack(tensor(set))]
    weights: Option<Vec<[f32; 2]>>,
    #[dlpack(tensor(set, owner))]
    state: SharedBuffer<f64>,
    #[dlpack(tensor(set, shape = [2, _], order = "F"))]
    matrix: Vec<i32>,
    #[dlpack(tensor(set, shape = [2, _], order = "F"))]
    kept_matrix: SharedBuffer<f64>,
    #[dlpack(tensor)]
    fixed: Vec<u8>,
    rows: usize,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Settings {
    #[new]
    fn new(rows: usize) -> PyResult<Self> {
        Ok(Self {
            mask: vec![false; rows * 3],
            weights: None,
            state: SharedBuffer::zeroed(rows)?,
            matrix: vec![0, 1, 2, 3],
            kept_matrix: SharedBuffer::zeroed(4)?,
            fixed: vec![0],
            rows,
            _alive: Alive::new(),
        })
    }

    /// The items in the order of memory.
    fn items(&self) -> (Vec<bool>, Vec<i32>) {
        (self.mask.clone(), self.matrix.clone())
    }

    /// Calls `function` while a method of this object reads it.
    fn during_read<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        function.call0()
    }
}

/// The number of its rows is asked from Python, while an array is assigned.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Measured {
    #[dlpack(tensor(set, shape = [self.count_rows(), _]))]
    grid: Vec<f64>,
    counter: Py<PyAny>,
    _alive: Alive,
}

impl Measured {
    fn count_rows(&self) -> usize {
        let answer = Python::attach(|py| self.counter.call0(py)?.extract(py));
        answer.unwrap_or(0)
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Measured {
    #[new]
    fn new(counter: Py<PyAny>) -> Self {
        Self {
            grid: vec![0.0; 4],
            counter,
            _alive: Alive::new(),
        }
    }

    fn items(&self) -> Vec<f64> {
        self.grid.clone()
    }
}

/// Is pickled as a tensor.
#[pyclass(frozen, subclass, module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Picture {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
    _alive: Alive,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Picture {
    #[new]
    fn new(rows: u8, columns: u8) -> Self {
        let count = u16::from(rows) * u16::from(columns);
        Self {
            pixels: (0..count).map(f32::from).collect(),
            dims: [rows.into(), columns.into()],
            _alive: Alive::new(),
        }
    }
}

/// Is pickled as a tensor over memory that other code may write; its class names no module.
#[pyclass]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Canvas {
    #[dlpack(data, owner)]
    pixels: SharedBuffer<u16>,
    _alive: Alive,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Canvas {
    #[new]
    fn new(len: usize) -> PyResult<Self> {
        let pixels = SharedBuffer::zeroed(len)?;
        let _alive = Alive::new();
        Ok(Self { pixels, _alive })
    }
}

/// Is pickled as a tensor; its exports keep the object.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Plate {
    #[dlpack(data)]
    pixels: SharedBuffer<u16>,
    _alive: Alive,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Plate {
    #[new]
    fn new(len: usize) -> PyResult<Self> {
        let pixels = SharedBuffer::zeroed(len)?;
        let _alive = Alive::new();
        Ok(Self { pixels, _alive })
    }
}

/// Is pickled as a tensor in Fortran order, in memory that it adopts.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
#[dlpack(order = "F")]
pub(crate) struct ColumnMajor {
    #[dlpack(data)]
    numbers: SharedBuffer<f64>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl ColumnMajor {
    #[new]
    fn new(numbers: Vec<f64>, dims: [usize; 2]) -> Self {
        let numbers = numbers.into();
        Self { numbers, dims }
    }
}

/// Python cannot write its memory, but Rust does.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Gauge {
    #[dlpack(data, owner, readonly)]
    numbers: SharedBuffer<f64>,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Gauge {
    #[new]
    fn new(numbers: Vec<f64>) -> Self {
        let numbers = numbers.into();
        Self { numbers }
    }

    fn set(&self, index: usize, number: f64) {
        self.numbers.set(index, number);
    }
}

/// An enum: each object belongs to a class that PyO3 derives from this one.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) enum Measure {
    Whole { numbers: Vec<i64> },
    Real { numbers: Vec<f64> },
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Measure {}

/// Two variants take the same arrays.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) enum Channel {
    Left { samples: Vec<f32> },
    Right { samples: Vec<f32> },
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Channel {}

/// Is pickled as a tensor in Fortran order of elements in C order.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
#[dlpack(order = "F")]
pub(crate) struct PointGrid {
    #[dlpack(data)]
    points: SharedBuffer<[f64; 3]>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl PointGrid {
    #[new]
    fn new(points: Vec<[f64; 3]>, dims: [usize; 2]) -> Self {
        let points = points.into();
        Self { points, dims }
    }
}

/// A class that its module does not export.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Homeless {
    #[dlpack(data)]
    pixels: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods(pickle)]
#[pymethods]
impl Homeless {}

/// An object of a class that its module does not export.
#[pyfunction]
pub(crate) fn homeless() -> Homeless {
    let (pixels, _alive) = (vec![1.0], Alive::new());
    Homeless { pixels, _alive }
}
