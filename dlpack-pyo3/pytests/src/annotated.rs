//! One class for each of the remaining keys and options.

use std::sync::Mutex;

use dlpack_pyo3::binding::Extras;
use dlpack_pyo3::{
    DLPack, DataType, Descriptor, Error, FromDLPack, Layout, Parts, Protocol, SharedBuffer,
    dlpack_pymethods,
};
use pyo3::prelude::*;

use crate::alive::Alive;

/// A frozen class, with a lock around a field other than the memory.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Guarded {
    #[dlpack(data)]
    items: Box<[f32]>,
    notes: Mutex<Vec<String>>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Guarded {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        Self {
            items: items.into(),
            notes: Mutex::default(),
            _alive: Alive::new(),
        }
    }

    fn note(&self, text: String) -> usize {
        let mut notes = self.notes.lock().expect("no holder panics");
        notes.push(text);
        notes.len()
    }
}

/// Its tensor is computed for each export.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(via = self.items.iter().map(|item| item * 2.0).collect::<Vec<f32>>())]
pub(crate) struct Doubled {
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Doubled {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }

    fn push(&mut self, item: f32) {
        self.items.push(item);
    }
}

/// Refuses legacy consumers, because their struct has no read-only flag.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(legacy = "refuse")]
pub(crate) struct Strict {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Strict {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }
}

/// Also supports the draft's `__dlpack_info__` and `version=`.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Draft {
    #[dlpack(data)]
    items: SharedBuffer<f32>,
    _alive: Alive,
}

#[dlpack_pymethods(info)]
#[pymethods]
impl Draft {
    #[new]
    fn new(items: Vec<f32>) -> PyResult<Self> {
        Ok(Self {
            items: SharedBuffer::copied_from(&items)?,
            _alive: Alive::new(),
        })
    }
}

/// `for` and `len` use its rows.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
pub(crate) struct Rows {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods(iterable)]
#[pymethods]
impl Rows {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }

    fn push(&mut self, item: f32) {
        self.items.push(item);
    }
}

/// Has its own `__len__`.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Counted {
    #[dlpack(data)]
    items: [f32; 3],
    _alive: Alive,
}

#[dlpack_pymethods(iterable)]
#[pymethods]
impl Counted {
    #[new]
    fn new() -> Self {
        Self {
            items: [1.0, 2.0, 3.0],
            _alive: Alive::new(),
        }
    }

    fn __len__(&self) -> usize {
        42
    }
}

/// A class without the attribute macro.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct ByHand {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[pymethods]
impl ByHand {
    #[classattr]
    #[expect(
        non_upper_case_globals,
        reason = "the name is the one that consumers look for"
    )]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new();

    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }
}

/// Made of a tensor by a copy: the exchange table makes objects of this class.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Points {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods]
#[pymethods]
impl Points {
    #[new]
    fn new(values: Vec<f32>, dims: [usize; 2]) -> Self {
        Self { values, dims }
    }

    #[getter]
    fn values(&self) -> Vec<f32> {
        self.values.clone()
    }

    #[getter]
    fn dims(&self) -> [usize; 2] {
        self.dims
    }
}

/// Made of a tensor without a copy: the exchange table makes objects of this class over the same memory.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Adopted {
    #[dlpack(data)]
    values: SharedBuffer<f32>,
    #[dlpack(shape)]
    dims: Vec<i64>,
}

#[dlpack_pymethods]
#[pymethods]
impl Adopted {
    #[new]
    fn new(values: Vec<f32>) -> PyResult<Self> {
        Ok(Self {
            dims: vec![i64::try_from(values.len()).expect("a list is not that long")],
            values: SharedBuffer::copied_from(&values)?,
        })
    }

    #[getter]
    fn data_ptr(&self) -> usize {
        self.values.as_ptr().addr()
    }

    fn get(&self, index: usize) -> f32 {
        self.values.get(index)
    }

    fn set(&self, index: usize, value: f32) {
        self.values.set(index, value);
    }
}

/// Like [`Lent`], with one item of four bits in each byte.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(dtype = DataType::F4_E2M1FN.padded())]
pub(crate) struct LentPadded {
    #[dlpack(data)]
    items: SharedBuffer<u8>,
    #[dlpack(shape, strides)]
    layout: Layout<1>,
}

#[dlpack_pymethods]
#[pymethods]
impl LentPadded {
    #[new]
    fn new(items: usize) -> PyResult<Self> {
        Ok(Self {
            items: SharedBuffer::zeroed(items)?,
            layout: Layout::row_major([items])?,
        })
    }
}

/// Its shape and strides are in the object, but its elements are made for each request.
#[pyclass(frozen, module = "dlpack_probe")]
pub(crate) struct LentOnRequest {
    layout: Layout<1>,
}

impl DLPack for LentOnRequest {
    const EXTRAS: Extras<Self> =
        Extras::NONE.lists(true, |it| Some((it.layout.shape(), it.layout.strides())));

    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new().via(vec![0.0_f32; 4])
    }
}

#[pymethods]
impl LentOnRequest {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name that DLPack gives it")]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new();

    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self {
            layout: Layout::row_major([4])?,
        })
    }
}

/// Shape and strides are in the object, so that the exchange table can lend them.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Lent {
    #[dlpack(data)]
    pixels: SharedBuffer<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<2>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Lent {
    #[new]
    fn new(rows: usize, columns: usize) -> PyResult<Self> {
        let layout = Layout::column_major([rows, columns])?;
        let pixels = SharedBuffer::zeroed(rows * columns)?;
        for index in 0..pixels.len() {
            let value = u16::try_from(index % 101).unwrap_or(0);
            pixels.set(index, f32::from(value));
        }
        Ok(Self {
            pixels,
            layout,
            _alive: Alive::new(),
        })
    }

    #[getter]
    fn data_ptr(&self) -> usize {
        self.pixels.as_ptr().addr()
    }
}

/// Like [`Lent`], but over read-only memory, which a borrowed tensor cannot express.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Still {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<1>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Still {
    #[new]
    fn new(pixels: Vec<f32>) -> PyResult<Self> {
        Ok(Self {
            layout: Layout::row_major([pixels.len()])?,
            pixels,
            _alive: Alive::new(),
        })
    }
}
