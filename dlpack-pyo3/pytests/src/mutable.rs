//! Classes that methods can change, and one with Python subclasses.

use dlpack_pyo3::{
    DLPack, Layout, SharedBuffer, borrow_mut_or_buffer_error, borrow_or_buffer_error,
    dlpack_pymethods,
};
use pyo3::prelude::*;

use crate::alive::Alive;

macro_rules! changeable {
    ($(#[$doc:meta])* $name:ident, $($flag:ident)?) => {
        $(#[$doc])*
        #[pyclass(subclass, module = "dlpack_probe")]
        #[derive(DLPack)]
        pub(crate) struct $name {
            #[dlpack(data $(, $flag)?)]
            items: Vec<f32>,
            _alive: Alive,
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new(items: Vec<f32>) -> Self {
                Self { items, _alive: Alive::new() }
            }

            fn push(&mut self, item: f32) {
                self.items.push(item);
            }

            fn clear(&mut self) {
                self.items = Vec::new();
            }

            fn get(&self, index: usize) -> Option<f32> {
                self.items.get(index).copied()
            }

            fn __len__(&self) -> usize {
                self.items.len()
            }

            fn __setitem__(&mut self, index: usize, item: f32) {
                self.items[index] = item;
            }

            #[getter]
            fn data_ptr(&self) -> usize {
                self.items.as_ptr().addr()
            }

            /// `push` with the error that Python's own buffers raise.
            fn push_or_buffer_error(slf: &Bound<'_, Self>, item: f32) -> PyResult<()> {
                borrow_mut_or_buffer_error(slf)?.push(item);
                Ok(())
            }

            /// `get` with the error that Python's own buffers raise.
            fn get_or_buffer_error(slf: &Bound<'_, Self>, index: usize) -> PyResult<Option<f32>> {
                Ok(borrow_or_buffer_error(slf)?.get(index))
            }

            /// Calls `function` while a method of this object reads it.
            fn during_read<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                function.call0()
            }

            /// Calls `function` while a method of this object changes it.
            fn during_change<'py>(&mut self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.items.push(0.0);
                function.call0()
            }
        }
    };
}

changeable! {
    /// Its exports are read-only, and keep a shared borrow.
    Mutable,
}

changeable! {
    /// Its exports are writable, and keep the exclusive borrow.
    Exclusive, writable
}

macro_rules! bendable {
    ($(#[$doc:meta])* $name:ident, $($flag:ident)?) => {
        $(#[$doc])*
        #[pyclass(module = "dlpack_probe")]
        #[derive(DLPack)]
        pub(crate) struct $name {
            #[dlpack(data $(, $flag)?)]
            items: Vec<f32>,
            #[dlpack(shape)]
            dims: Vec<i64>,
            _alive: Alive,
        }

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new(items: Vec<f32>, dims: Vec<i64>) -> Self {
                Self { items, dims, _alive: Alive::new() }
            }

            fn bend(&mut self, dims: Vec<i64>) {
                self.dims = dims;
            }
        }
    };
}

bendable! {
    /// Its shape need not fit its data.
    Bent,
}

bendable! {
    /// Its shape need not fit its data; its exports keep the exclusive borrow.
    BentAlone, writable
}

/// Has a `__dict__` and weak references, and may be a base class.
#[pyclass(frozen, subclass, dict, weakref, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Open {
    #[dlpack(data)]
    items: Vec<f32>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Open {
    #[new]
    fn new(items: Vec<f32>) -> Self {
        let _alive = Alive::new();
        Self { items, _alive }
    }
}

/// Its shape and strides are in the object, and methods can change them.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Changing {
    #[dlpack(data)]
    items: SharedBuffer<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<1>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Changing {
    #[new]
    fn new(items: Vec<f32>) -> PyResult<Self> {
        let layout = Layout::row_major([items.len()])?;
        Ok(Self {
            items: SharedBuffer::copied_from(&items)?,
            layout,
            _alive: Alive::new(),
        })
    }
}
