//! Results of functions that are arrays of a library.

use core::sync::atomic::{AtomicUsize, Ordering};

use dlpack_pyo3::{Buffer, DLPack, Imported, Loan, Managed, Numpy, SharedBuffer, Tensor};
use ndarray::{Array2, ShapeBuilder, s};
use pyo3::prelude::*;

use crate::alive::Alive;

/// A value that is counted while it lives.
#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
pub(crate) struct Ramp {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

/// An array over a new list, and the address of its first item.
#[pyfunction]
pub(crate) fn ramp(len: u16) -> (Numpy<Ramp>, usize) {
    let items: Vec<_> = (0..len).map(f32::from).collect();
    let address = items.as_ptr().addr();
    let _alive = Alive::new();
    (Numpy(Ramp { items, _alive }), address)
}

/// Six numbers in column-major order, with the rows reversed.
#[pyfunction]
pub(crate) fn matrix() -> Numpy<Array2<f64>> {
    let mut matrix = Array2::zeros((3, 2).f());
    matrix
        .iter_mut()
        .zip(0..)
        .for_each(|(place, number)| *place = f64::from(number));
    Numpy(matrix.slice_move(s![..;-1, ..]))
}

/// The tensor of any producer.
#[pyfunction]
pub(crate) fn to_numpy(tensor: Tensor) -> Numpy<Managed> {
    Numpy(tensor.into_managed())
}

/// The memory of an array, adopted and returned.
#[pyfunction]
pub(crate) fn adopted_numpy(buffer: Imported<SharedBuffer<f64>>) -> Numpy<SharedBuffer<f64>> {
    Numpy(buffer.0)
}

/// A buffer that is more than its memory, such as a slot that its pool gets back.
pub(crate) struct Slot {
    memory: SharedBuffer<f64>,
    _alive: Alive,
}

impl Buffer for Slot {
    fn lend(&self) -> Loan<'_> {
        self.memory.lend()
    }
}

#[derive(DLPack)]
pub(crate) struct Slotted {
    #[dlpack(data)]
    slot: Slot,
}

#[derive(DLPack)]
pub(crate) enum SlotOrVec {
    Slot {
        #[dlpack(data)]
        slot: Slot,
    },
    #[expect(dead_code, reason = "an enum has several variants")]
    Vec {
        #[dlpack(data)]
        items: Vec<f64>,
    },
}

/// Arrays over a struct and an enum that contain a slot.
#[pyfunction]
pub(crate) fn slotted() -> PyResult<(Numpy<Slotted>, Numpy<SlotOrVec>)> {
    let slot = || -> PyResult<Slot> {
        Ok(Slot {
            memory: SharedBuffer::copied_from(&[1.0, 2.0])?,
            _alive: Alive::new(),
        })
    };
    let (one, other) = (slot()?, slot()?);
    Ok((
        Numpy(Slotted { slot: one }),
        Numpy(SlotOrVec::Slot { slot: other }),
    ))
}

/// Four numbers inline in the value, with more alignment than Python's allocator guarantees.
#[derive(DLPack)]
#[repr(align(256))]
pub(crate) struct Inline {
    #[dlpack(data)]
    items: [f64; 4],
    panics: bool,
    _alive: Alive,
}

impl Drop for Inline {
    fn drop(&mut self) {
        assert!(!self.panics, "panic on purpose");
    }
}

#[pyfunction]
pub(crate) fn inline(panics: bool) -> Numpy<Inline> {
    Numpy(Inline {
        items: [1.0, 2.0, 3.0, 4.0],
        panics,
        _alive: Alive::new(),
    })
}

/// Numbers that are computed by `describe`, with a counter of its calls.
#[derive(DLPack)]
#[dlpack(via = self.compute())]
pub(crate) struct Computed {
    times: &'static AtomicUsize,
    _alive: Alive,
}

impl Computed {
    fn compute(&self) -> Vec<usize> {
        vec![self.times.fetch_add(1, Ordering::Relaxed); 3]
    }
}

#[pyfunction]
pub(crate) fn computed() -> Numpy<Computed> {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    Numpy(Computed {
        times: &TIMES,
        _alive: Alive::new(),
    })
}
