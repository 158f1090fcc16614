//! Code without these crates that the page on porting replaces: compiled, run, and quoted there.

use core::ffi::c_int;

use numpy::{PyArray3, ndarray::Array3};
use pyo3::{exceptions::PyBufferError, ffi, prelude::*, types::PyDict};

#[pyclass(frozen)]
pub(crate) struct Image {
    pixels: Array3<f32>,
}

#[pymethods]
impl Image {
    #[new]
    fn new() -> Self {
        Self {
            pixels: Array3::zeros((2, 2, 3)),
        }
    }

    #[getter]
    fn pixels<'py>(slf: Bound<'py, Self>) -> Bound<'py, PyArray3<f32>> {
        let pixels = &slf.get().pixels;
        // SAFETY: no code may move or change the pixels
        // while an array over them lives.
        unsafe { PyArray3::borrow_from_array(pixels, slf.clone().into_any()) }
    }
}

#[pyclass]
pub(crate) struct Series {
    values: Vec<f64>,
}

#[pymethods]
impl Series {
    #[new]
    fn new() -> Self {
        Self {
            values: vec![1.0, 2.0],
        }
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("typestr", "<f8")?;
        dict.set_item("shape", (self.values.len(),))?;
        let address = self.values.as_ptr() as usize;
        dict.set_item("data", (address, true))?;
        Ok(dict)
    }
}

#[pyclass(frozen)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
}

#[pymethods]
impl Packet {
    #[new]
    fn new() -> Self {
        Self {
            bytes: b"abc".to_vec(),
        }
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(PyBufferError::new_err("read-only"));
        }
        let bytes = &slf.get().bytes;
        let len = bytes.len() as isize;
        // SAFETY: Python hands in a view to be filled.
        let view = unsafe { &mut *view };
        view.buf = bytes.as_ptr().cast_mut().cast();
        view.len = len;
        view.readonly = 1;
        view.itemsize = 1;
        view.format = c"B".as_ptr().cast_mut();
        view.ndim = 1;
        view.shape = Box::into_raw(Box::new(len));
        view.strides = &raw mut view.itemsize;
        view.suboffsets = core::ptr::null_mut();
        view.internal = core::ptr::null_mut();
        view.obj = slf.clone().into_ptr();
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python hands in the view that was filled.
        let shape = unsafe { (*view).shape };
        // SAFETY: `__getbuffer__` boxed it.
        drop(unsafe { Box::from_raw(shape) });
    }
}

/// `guide.before`, whose classes the tests read.
#[pymodule(name = "before")]
pub(crate) mod python {
    #[pymodule_export]
    use super::{Image, Packet, Series};
}
