//! A class for each kind with a different cost and for each rank, all with the same numbers; and functions that take and return
//! arrays.
#![deny(unsafe_code)]

mod forms;
mod lists;
mod programs;
mod takes;

use std::sync::Arc;

use dlpack_pyo3::{DLPack, Layout, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

fn numbers(dims: &[usize]) -> Vec<f32> {
    (0..dims.iter().product()).map(|i| i as f32).collect()
}

/// Classes as a user writes them, for ranks 1 to 4.
macro_rules! kind {
    (#[$class:meta] #[$data:meta] $pixels:ty, $make:expr; $($name:ident $rank:literal)*) => {$(
        #[$class]
        #[derive(DLPack)]
        struct $name {
            #[$data]
            pixels: $pixels,
            #[dlpack(shape)]
            dims: [usize; $rank],
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new(dims: [usize; $rank]) -> PyResult<Self> {
                let make: fn(Vec<f32>) -> PyResult<$pixels> = $make;
                Ok(Self { pixels: make(numbers(&dims))?, dims })
            }
        }
    )*};
}

// Frozen: nothing is borrowed.
kind!(#[pyclass(frozen)] #[dlpack(data)] Vec<f32>, Ok; Frozen1 1 Frozen2 2 Frozen3 3 Frozen4 4);
// Exports keep a shared borrow.
kind!(#[pyclass] #[dlpack(data)] Vec<f32>, Ok; Mutable3 3);
// Exports keep the exclusive borrow.
kind!(#[pyclass] #[dlpack(data, writable)] Vec<f32>, Ok; Writable1 1 Writable2 2 Writable3 3 Writable4 4);
// Memory that both sides may write.
kind!(
    #[pyclass(frozen)] #[dlpack(data)] SharedBuffer<f32>, |numbers| Ok(SharedBuffer::copied_from(&numbers)?);
    Shared1 1 Shared2 2 Shared3 3 Shared4 4
);
// Exports keep a clone of the handle, so the object is not borrowed.
kind!(#[pyclass] #[dlpack(data, owner)] Arc<[f32]>, |numbers| Ok(numbers.into()); Owned1 1 Owned2 2 Owned3 3 Owned4 4);

/// Shape and strides are in the object, so that the exchange table can lend them.
#[pyclass(frozen)]
#[derive(DLPack)]
struct Laid3 {
    #[dlpack(data)]
    pixels: SharedBuffer<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<3>,
}

#[dlpack_pymethods]
#[pymethods]
impl Laid3 {
    #[new]
    fn new(dims: [usize; 3]) -> PyResult<Self> {
        Ok(Self {
            pixels: SharedBuffer::copied_from(&numbers(&dims))?,
            layout: Layout::row_major(dims)?,
        })
    }
}

#[pymodule]
mod bench_ours {
    #[pymodule_export]
    use super::forms::{
        Attributes, ColumnMajor, Columns, Computed, Delegating, Enum, OtherElement, OverArc,
        OverNdarray, PaddedRows, RuntimeType, ShapeInferred, ShapeOfElements, ShapeOfFields,
        WithByteStrides, WithOffset, WithStrides,
    };
    #[pymodule_export]
    use super::lists::{
        Settable, Tape, arrays, frames, jax, ranks, same_filled, same_jax, same_like, same_numpy,
        same_torch, tensor, torch,
    };
    #[pymodule_export]
    use super::programs::{Environments, Loader, table};
    #[pymodule_export]
    use super::takes::{
        any_rank, copy_f32, copy_f64, copy_u8, give, import_f32, import_f64, import_u8, largest,
        largest_of_slice, rank_1, rank_1_mut, rank_2, rank_3, rank_4, ranks_1_mut, reduce_max,
        reduce_sum, sum, sum_of_slice,
    };
    #[pymodule_export]
    use super::{
        Frozen1, Frozen2, Frozen3, Frozen4, Laid3, Mutable3, Owned1, Owned2, Owned3, Owned4,
        Shared1, Shared2, Shared3, Shared4, Writable1, Writable2, Writable3, Writable4,
    };
    #[pymodule_export]
    use dlpack_pyo3::Tensor;
}
