//! One class of each kind that costs differently; all hold the same numbers. And functions that take arrays.
#![deny(unsafe_code)]

mod takes;

use std::sync::Arc;

use dlpack_pyo3::{DLPack, Layout, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

fn numbers(height: usize, width: usize) -> Vec<f32> {
    (0..height * width * 3).map(|index| index as f32).collect()
}

/// Nothing to borrow.
#[pyclass(frozen)]
#[derive(DLPack)]
struct Frozen {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Frozen {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        let dims = [height, width, 3];
        Self {
            pixels: numbers(height, width),
            dims,
        }
    }
}

/// Held by a shared borrow.
#[pyclass]
#[derive(DLPack)]
struct Mutable {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Mutable {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        let dims = [height, width, 3];
        Self {
            pixels: numbers(height, width),
            dims,
        }
    }
}

/// Held by the exclusive borrow.
#[pyclass]
#[derive(DLPack)]
struct Writable {
    #[dlpack(data, writable)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Writable {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        let dims = [height, width, 3];
        Self {
            pixels: numbers(height, width),
            dims,
        }
    }
}

/// Memory that both sides may write.
#[pyclass(frozen)]
#[derive(DLPack)]
struct Shared {
    #[dlpack(data)]
    pixels: SharedBuffer<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Shared {
    #[new]
    fn new(height: usize, width: usize) -> PyResult<Self> {
        let pixels = SharedBuffer::copied_from(&numbers(height, width))?;
        Ok(Self {
            pixels,
            dims: [height, width, 3],
        })
    }
}

/// A handle is cloned, and the object stays free.
#[pyclass]
#[derive(DLPack)]
struct Owned {
    #[dlpack(data, owner)]
    pixels: Arc<[f32]>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Owned {
    #[new]
    fn new(height: usize, width: usize) -> Self {
        Self {
            pixels: numbers(height, width).into(),
            dims: [height, width, 3],
        }
    }
}

/// Shape and strides lie in the object, so that the exchange table can lend them.
#[pyclass(frozen)]
#[derive(DLPack)]
struct Laid {
    #[dlpack(data)]
    pixels: SharedBuffer<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<3>,
}

#[dlpack_pymethods]
#[pymethods]
impl Laid {
    #[new]
    fn new(height: usize, width: usize) -> PyResult<Self> {
        Ok(Self {
            pixels: SharedBuffer::copied_from(&numbers(height, width))?,
            layout: Layout::row_major([height, width, 3])?,
        })
    }
}

#[pymodule]
fn bench_ours(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Frozen>()?;
    module.add_class::<Mutable>()?;
    module.add_class::<Writable>()?;
    module.add_class::<Shared>()?;
    module.add_class::<Owned>()?;
    module.add_class::<Laid>()?;
    takes::add(module)
}
