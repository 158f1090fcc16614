//! A class for each way to declare a tensor. All of them export the same numbers as float32 of shape (4, 5, 3).

use core::array::from_fn;
use std::sync::Arc;

use dlpack_pyo3::dlpack_core::ndarray::Array3;
use dlpack_pyo3::{DLPack, DataType, Record, dlpack_pymethods};
use pyo3::prelude::*;

use crate::numbers;

/// Frozen classes with these keys, whose fields are computed from the shape.
macro_rules! forms {
    ($(
        $(#[$key:meta])*
        $name:ident($dims:ident) { $($(#[$role:meta])* $field:ident: $ty:ty = $value:expr,)* }
    )*) => {$(
        #[pyclass(frozen)]
        #[derive(DLPack)]
        $(#[$key])*
        pub struct $name {
            $($(#[$role])* $field: $ty,)*
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new($dims: [usize; 3]) -> Self {
                Self { $($field: $value,)* }
            }
        }
    )*};
}

forms! {
    #[dlpack(shape = [height, width, 3])]
    ShapeOfFields(dims) {
        #[dlpack(data)] pixels: Vec<f32> = numbers(&dims),
        height: usize = dims[0],
        width: usize = dims[1],
    }

    #[dlpack(shape = [_, 5, 3])]
    ShapeInferred(dims) {
        #[dlpack(data)] pixels: Vec<f32> = numbers(&dims),
    }

    ShapeOfElements(dims) {
        #[dlpack(data)] pixels: Vec<[[f32; 3]; 5]> = rows(&dims),
    }

    WithStrides(dims) {
        #[dlpack(data)] pixels: Vec<f32> = numbers(&dims),
        #[dlpack(shape)] shape: [usize; 3] = dims,
        #[dlpack(strides)] strides: [isize; 3] = [15, 3, 1],
    }

    #[dlpack(strides = [pitch, _, _])]
    PaddedRows(dims) {
        #[dlpack(data)] pixels: Vec<f32> = rows(&dims).concat().chunks(5).flat_map(|row| [row.as_flattened(), &[0.0]].concat()).collect(),
        #[dlpack(shape)] shape: [usize; 3] = dims,
        pitch: usize = 16,
    }

    WithByteStrides(dims) {
        #[dlpack(data)] pixels: Vec<f32> = numbers(&dims),
        #[dlpack(shape)] shape: [usize; 3] = dims,
        #[dlpack(byte_strides)] strides: [isize; 3] = [60, 12, 4],
    }

    #[dlpack(order = "F")]
    ColumnMajor(dims) {
        #[dlpack(data)] pixels: Vec<f32> = column_major(&dims),
        #[dlpack(shape)] shape: [usize; 3] = dims,
    }

    #[dlpack(offset = 2)]
    WithOffset(dims) {
        #[dlpack(data)] pixels: Vec<f32> = [vec![0.0; 2], numbers(&dims)].concat(),
        #[dlpack(shape)] shape: [usize; 3] = dims,
    }

    #[dlpack(elem = f32)]
    OtherElement(dims) {
        #[dlpack(data)] pixels: Vec<u32> = numbers(&dims).into_iter().map(f32::to_bits).collect(),
        #[dlpack(shape)] shape: [usize; 3] = dims,
    }

    RuntimeType(dims) {
        #[dlpack(data)] pixels: Vec<f32> = numbers(&dims),
        #[dlpack(shape)] shape: [usize; 3] = dims,
        #[dlpack(dtype)] dtype: DataType = DataType::F32,
    }

    Enum(dims) {
        inner: Variants = Variants::Float(Generic { values: numbers(&dims), shape: dims }),
    }

    Delegating(dims) {
        inner: Generic<f32> = Generic { values: numbers(&dims), shape: dims },
    }

    #[dlpack(via = handle.clone())]
    Computed(dims) {
        handle: Handle = Handle { values: numbers(&dims).into(), shape: dims },
    }

    OverNdarray(dims) {
        pixels: Array3<f32> = Array3::from_shape_vec(dims, numbers(&dims)).expect("one number each"),
    }

    OverArc(dims) {
        #[dlpack(data)] pixels: Arc<[f32]> = numbers(&dims).into(),
        #[dlpack(shape)] shape: [usize; 3] = dims,
    }

    Attributes(dims) {
        #[dlpack(tensor(shape = [_, 5, 3]))] image: Vec<f32> = numbers(&dims),
        #[dlpack(tensor)] labels: Vec<u8> = vec![0; dims[0]],
    }

    Columns(dims) {
        #[dlpack(columns)] rows: Vec<Row> = rows(&dims).into_iter().map(|pixels| Row { pixels, label: 0.0 }).collect(),
    }
}

/// The variant decides which tensor is exported.
#[derive(DLPack)]
pub enum Variants {
    Float(Generic<f32>),
    #[expect(dead_code, reason = "an enum has several variants")]
    Byte(Generic<u8>),
}

#[derive(DLPack)]
pub struct Generic<T: dlpack_pyo3::Element> {
    #[dlpack(data)]
    values: Vec<T>,
    #[dlpack(shape)]
    shape: [usize; 3],
}

#[derive(Clone, DLPack)]
pub struct Handle {
    #[dlpack(data)]
    values: Arc<[f32]>,
    #[dlpack(shape)]
    shape: [usize; 3],
}

#[derive(Clone, Copy, Record)]
#[repr(C)]
pub struct Row {
    pixels: [[f32; 3]; 5],
    label: f32,
}

fn rows(dims: &[usize; 3]) -> Vec<[[f32; 3]; 5]> {
    let numbers = numbers(dims);
    let row = |row: &[f32]| from_fn(|i| from_fn(|j| row[3 * i + j]));
    numbers.chunks_exact(15).map(row).collect()
}

/// The numbers of a row-major tensor, reordered to column-major.
fn column_major(dims: &[usize; 3]) -> Vec<f32> {
    let array = Array3::from_shape_vec(*dims, numbers(dims)).expect("one number each");
    array.t().iter().copied().collect()
}
