//! A class of images: four data types, memory of its own or of an array, writable, and no copy in either direction.
//!
//! | from | to | the pixels |
//! |---|---|---|
//! | `Image(height, width, channels, dtype)` | an image | are zeros of its own |
//! | `Image.over(array)` | an image | stay where they are: image and array write to the same memory |
//! | `Image.copy_of(array)` | an image | are copied, once |
//! | an image | an array | stay where they are, and the array may write to them |
//!
//! ```text
//! cd examples/image-class && maturin develop --release && python picture.py
//! ```
#![forbid(unsafe_code)]

mod pixels;

use dlpack_pyo3::{DLPack, Imported, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::pixels::{AnyCopied, AnyPixels, Pixels, with_pixels};

/// An image of shape (height, width, channels), of uint8, uint16, float32 or float64.
#[pyclass(frozen, module = "image_class")]
#[derive(DLPack)]
struct Image(AnyPixels);

#[dlpack_pymethods]
#[pymethods]
impl Image {
    /// A black image with memory of its own.
    #[new]
    #[pyo3(signature = (height, width, channels=3, dtype="uint8"))]
    fn new(height: usize, width: usize, channels: usize, dtype: &str) -> PyResult<Self> {
        let size = [height, width, channels];
        let pixels = match dtype {
            "uint8" => AnyPixels::U8(Pixels::black(size)?),
            "uint16" => AnyPixels::U16(Pixels::black(size)?),
            "float32" => AnyPixels::F32(Pixels::black(size)?),
            "float64" => AnyPixels::F64(Pixels::black(size)?),
            _ => return Err(PyValueError::new_err(format!("no images of {dtype}"))),
        };
        Ok(Self(pixels))
    }

    /// An image over the memory of an array: what one writes, the other sees. Of a read-only array the image is read-only.
    #[staticmethod]
    fn over(array: Imported<AnyPixels>) -> Self {
        Self(array.0)
    }

    /// An image with a copy of the pixels of an array, whatever its strides.
    #[staticmethod]
    fn copy_of(array: Imported<AnyCopied>) -> Self {
        Self(array.0.into())
    }

    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        let [height, width, channels] = with_pixels!(&self.0, pixels => pixels.size());
        (height, width, channels)
    }

    /// The mean of all pixels and channels.
    fn mean(&self, py: Python<'_>) -> f64 {
        py.detach(|| with_pixels!(&self.0, pixels => pixels.mean()))
    }

    /// Multiplies each pixel, where it lies. A number that the data type cannot hold becomes the nearest one that it can.
    fn scale(&self, py: Python<'_>, factor: f64) -> PyResult<()> {
        py.detach(|| with_pixels!(&self.0, pixels => pixels.scale(factor)))
    }
}

/// What `import image_class` gets from Rust.
#[pymodule(name = "image_class", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::Image;
}
