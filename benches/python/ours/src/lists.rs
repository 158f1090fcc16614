//! Lists of arrays and of records, attributes that are set, tensors that are not of a class, and results of a library.

use dlpack_pyo3::{
    DLPack, Exported, Jax, Like, Numpy, Prototype, Record, Torch, View, ViewMut,
    dlpack_core::ndarray::ArrayD, dlpack_pymethods,
};
use pyo3::prelude::*;

use crate::{Frozen2, numbers};

const FRAME: [usize; 2] = [16, 16];

/// Objects of a class.
#[pyfunction]
pub fn frames(count: usize) -> Vec<Frozen2> {
    let frame = || Frozen2 {
        pixels: vec![1.0; FRAME.iter().product()],
        dims: FRAME,
    };
    (0..count).map(|_| frame()).collect()
}

/// NumPy arrays.
#[pyfunction]
pub fn arrays(count: usize) -> Vec<Numpy<Vec<f32>>> {
    let frame = || Numpy(vec![1.0; FRAME.iter().product()]);
    (0..count).map(|_| frame()).collect()
}

/// The sum of the ranks of a list of arrays.
#[pyfunction]
pub fn ranks(arrays: Vec<View<f32, 2>>) -> usize {
    arrays.iter().map(|array| array.rank()).sum()
}

#[pyclass]
#[derive(DLPack)]
pub struct Settable {
    #[dlpack(tensor(set))]
    pixels: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Settable {
    #[new]
    fn new(len: usize) -> Self {
        Self {
            pixels: vec![0.0; len],
        }
    }
}

#[derive(Record, Clone, Copy)]
#[repr(C)]
pub struct Trade {
    price: f64,
    size: u32,
    bid: bool,
}

/// A structured array in NumPy, of 16 bytes for each record.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
}

#[dlpack_pymethods]
#[pymethods]
impl Tape {
    #[new]
    fn new(count: usize) -> Self {
        let trade = Trade {
            price: 1.5,
            size: 1,
            bid: true,
        };
        Self {
            trades: vec![trade; count],
        }
    }
}

#[pyfunction]
pub fn tensor(dims: Vec<usize>) -> Exported<ArrayD<f32>> {
    let array = ArrayD::from_shape_vec(dims.clone(), numbers(&dims));
    Exported(array.expect("as many numbers as the shape has places"))
}

#[pyfunction]
pub fn jax(len: usize) -> Jax<Vec<f32>> {
    Jax(vec![1.0; len])
}

#[pyfunction]
pub fn torch(len: usize) -> Torch<Vec<f32>> {
    Torch(vec![1.0; len])
}

/// As many ones as the argument has numbers, in the library of the argument.
#[pyfunction]
pub fn same_like(array: Prototype<View<f32, 1>>) -> Like<Vec<f32>> {
    Like::new(&array, vec![1.0; array.len()])
}

/// As many ones as the argument has numbers, in memory of its library, if that has an allocator.
#[pyfunction]
pub fn same_filled(array: Prototype<View<f32, 1>>) -> PyResult<Like<ViewMut<f32, 1>>> {
    Like::full(&array, array.shape(), 1.0)
}

/// As many ones as the argument has numbers, in a library that the type names.
#[pyfunction]
pub fn same_numpy(array: View<f32, 1>) -> Numpy<Vec<f32>> {
    Numpy(vec![1.0; array.len()])
}

#[pyfunction]
pub fn same_jax(array: View<f32, 1>) -> Jax<Vec<f32>> {
    Jax(vec![1.0; array.len()])
}

#[pyfunction]
pub fn same_torch(array: View<f32, 1>) -> Torch<Vec<f32>> {
    Torch(vec![1.0; array.len()])
}
