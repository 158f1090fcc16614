//! [`Probe`] and [`WProbe`]: any data type, shape, strides and offset over their own memory.

use dlpack_pyo3::{DLPack, DataType, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::alive::{Alive, alive};
use crate::memory;

/// The least alignment that consumers require, which a `Vec` does not guarantee.
const ALIGNMENT: usize = 64;

/// The layout of the items, for both classes.
struct Place {
    dtype: DataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
    items: usize,
}

impl Place {
    fn new(
        shape: Vec<i64>,
        dtype: DataType,
        strides: Option<Vec<i64>>,
        offset: i64,
        items: Option<usize>,
    ) -> Self {
        let strides = strides.unwrap_or_else(|| memory::row_major(&shape));
        let items = items.unwrap_or_else(|| memory::reach(&shape, &strides, offset));
        Self {
            dtype,
            shape,
            strides,
            offset,
            items,
        }
    }

    fn gathered(&self, bytes: &[u8]) -> Vec<u8> {
        let itemsize = self.dtype.itemsize().unwrap_or(1);
        memory::gathered(bytes, itemsize, &self.shape, &self.strides, self.offset)
    }
}

/// A read-only class: frozen, over a `Vec`.
#[pyclass(frozen, weakref, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    data = &self.bytes[self.start..self.start + self.len],
    shape = &self.place.shape[..],
    strides = &self.place.strides[..],
    offset = self.place.offset,
    dtype = self.place.dtype
)]
pub(crate) struct Probe {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    place: Place,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Probe {
    #[new]
    #[pyo3(signature = (shape, dtype="float32", strides=None, offset=0, *, items=None, lanes=1, padded=false, skew=0))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords of a constructor for tests"
    )]
    fn new(
        shape: Vec<i64>,
        dtype: &str,
        strides: Option<Vec<i64>>,
        offset: i64,
        items: Option<usize>,
        lanes: u16,
        padded: bool,
        skew: usize,
    ) -> PyResult<Self> {
        let place = Place::new(
            shape,
            memory::parse(dtype, lanes, padded)?,
            strides,
            offset,
            items,
        );
        let filling = memory::filled(place.dtype, place.items);
        let mut bytes = vec![0; filling.len() + ALIGNMENT + skew];
        let start = bytes.as_ptr().align_offset(ALIGNMENT) + skew;
        bytes[start..start + filling.len()].copy_from_slice(&filling);
        Ok(Self {
            bytes,
            start,
            len: filling.len(),
            place,
            _alive: Alive::new(),
        })
    }

    /// The number of live objects of all classes in this module, including those that only an export keeps.
    #[staticmethod]
    fn alive() -> usize {
        alive()
    }

    /// The address of the memory, without the offset.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.bytes[self.start..].as_ptr().addr()
    }

    /// The items in row-major order.
    fn tobytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.place.gathered(&self.bytes[self.start..]))
    }
}

/// A frozen class over shared memory that all code may write.
#[pyclass(frozen, weakref, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    shape = &self.place.shape[..],
    strides = &self.place.strides[..],
    offset = self.place.offset,
    dtype = self.place.dtype
)]
pub(crate) struct WProbe {
    #[dlpack(data)]
    bytes: SharedBuffer<u8>,
    place: Place,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl WProbe {
    #[new]
    #[pyo3(signature = (shape, dtype="float32", strides=None, offset=0, *, items=None, lanes=1, padded=false))]
    fn new(
        shape: Vec<i64>,
        dtype: &str,
        strides: Option<Vec<i64>>,
        offset: i64,
        items: Option<usize>,
        lanes: u16,
        padded: bool,
    ) -> PyResult<Self> {
        let place = Place::new(
            shape,
            memory::parse(dtype, lanes, padded)?,
            strides,
            offset,
            items,
        );
        let bytes = SharedBuffer::copied_from(&memory::filled(place.dtype, place.items))?;
        Ok(Self {
            bytes,
            place,
            _alive: Alive::new(),
        })
    }

    /// The number of live objects of all classes in this module, including those that only an export keeps.
    #[staticmethod]
    fn alive() -> usize {
        alive()
    }

    /// The address of the memory, without the offset.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.bytes.as_ptr().addr()
    }

    /// The items in row-major order.
    fn tobytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.place.gathered(&self.bytes.to_vec()))
    }
}
