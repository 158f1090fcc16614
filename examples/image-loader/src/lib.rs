//! Pictures of the crate `image` in a DataLoader: decoded in worker processes, into an array or right into its batch.
//!
//! ```text
//! cd examples/image-loader && maturin develop --release && python pictures.py
//! ```
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use dlpack_pyo3::{Numpy, ViewMut};
use image::{ImageError, RgbImage};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The picture in a file, as an array of shape (height, width, 3). Nothing is copied: the array has the decoder's memory.
#[pyfunction]
fn decode(py: Python<'_>, path: PathBuf) -> PyResult<Numpy<RgbImage>> {
    py.detach(|| open(&path)).map(Numpy)
}

/// The same into an array that is there, such as a place in a batch.
#[pyfunction]
fn decode_into(py: Python<'_>, path: PathBuf, mut out: ViewMut<u8, 3>) -> PyResult<()> {
    py.detach(|| {
        let picture = open(&path)?;
        let found = [picture.height(), picture.width(), 3].map(|extent| extent as usize);
        let needed = out.shape();
        if found != needed {
            let text = format!("{}: {found:?} instead of {needed:?}", path.display());
            return Err(PyValueError::new_err(text));
        }
        Ok(out.copy_from_slice(picture.as_raw())?)
    })
}

/// Writes a picture, so that this example brings its own.
#[pyfunction]
fn encode(path: PathBuf, height: u32, width: u32, seed: u32) -> PyResult<()> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([x, y, seed].map(|number| number.to_le_bytes()[0]))
    });
    picture.save(&path).map_err(|error| failed(&path, &error))
}

fn open(path: &Path) -> PyResult<RgbImage> {
    let picture = image::open(path).map_err(|error| failed(path, &error))?;
    Ok(picture.into_rgb8())
}

fn failed(path: &Path, error: &ImageError) -> PyErr {
    PyValueError::new_err(format!("{}: {error}", path.display()))
}

/// What `import image_loader` gets from Rust.
#[pymodule(name = "image_loader", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::{decode, decode_into, encode};
}
