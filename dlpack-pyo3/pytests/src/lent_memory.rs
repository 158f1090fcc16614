//! Classes that lend their memory to functions over slices.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{
    DLPack, Error, FromDLPack, Imported, Shaped, SharedBuffer, View, ViewMut, dlpack_pymethods,
};
use pyo3::prelude::*;

/// Stands for a function of another crate that takes slices.
fn flip(from: &[u8], to: &mut [u8], row: usize) {
    for (from, to) in from.chunks_exact(row).rev().zip(to.chunks_exact_mut(row)) {
        to.copy_from_slice(from);
    }
}

/// An image whose methods borrow it exclusively, so that its memory is lent if no array has it.
#[pyclass]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Photo {
    #[dlpack(data, owner)]
    pixels: SharedBuffer<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[dlpack_pymethods]
#[pymethods]
impl Photo {
    #[new]
    fn new(photo: Imported<Self>) -> Self {
        photo.0
    }

    /// An image in new memory, whose pixels count up and wrap around to 0.
    #[staticmethod]
    fn ramp(height: usize, width: usize) -> PyResult<Self> {
        let pixels = SharedBuffer::filled(height * width, |pixels: &mut [u8]| {
            for (pixel, value) in pixels.iter_mut().zip((0..=u8::MAX).cycle()) {
                *pixel = value;
            }
        })?;
        let dims = [height, width];
        Ok(Self { pixels, dims })
    }

    fn flipped(&mut self) -> PyResult<Self> {
        let (dims, row) = (self.dims, self.dims[1]);
        let from = self.pixels.try_as_slice()?;
        let pixels = SharedBuffer::filled(from.len(), |to| flip(from, to, row))?;
        Ok(Self { pixels, dims })
    }

    /// Whether the pixels were lent, not copied.
    fn is_lent(&mut self) -> PyResult<bool> {
        Ok(matches!(self.pixels.slice_or_copy()?, Cow::Borrowed(_)))
    }

    fn sort(&mut self) -> PyResult<()> {
        self.pixels.try_as_mut_slice()?.sort_unstable();
        Ok(())
    }
}

/// A frozen class with a lock, whose exports and methods each get their own handle.
#[pyclass(frozen)]
#[derive(DLPack)]
#[dlpack(via = Shaped::new(self.handle(), dims))]
pub(crate) struct Locked {
    pixels: Mutex<SharedBuffer<u8>>,
    dims: [usize; 2],
}

impl Locked {
    fn handle(&self) -> SharedBuffer<u8> {
        let pixels = self.pixels.lock();
        pixels.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[dlpack_pymethods]
#[pymethods]
impl Locked {
    #[new]
    fn new(height: usize, width: usize) -> PyResult<Self> {
        let pixels = Mutex::new(SharedBuffer::zeroed(height * width)?);
        let dims = [height, width];
        Ok(Self { pixels, dims })
    }

    /// Adds one to every pixel, by a slice.
    fn brighten(&self) -> PyResult<()> {
        let pixels = self.pixels.lock();
        let mut pixels = pixels.unwrap_or_else(PoisonError::into_inner);
        let pixels = pixels.try_as_mut_slice()?;
        pixels.iter_mut().for_each(|pixel| *pixel += 1);
        Ok(())
    }
}

/// A frozen class whose author promises that nothing else accesses its memory while a method has a slice.
#[pyclass(frozen)]
#[derive(DLPack, FromDLPack)]
pub(crate) struct Promised {
    #[dlpack(data)]
    pixels: SharedBuffer<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

// SAFETY: the methods below keep no slice, hold the GIL while they have one, and call no Python code meanwhile. The tests access
// the arrays only with the GIL.
#[expect(unsafe_code, reason = "as in a user's crate")]
unsafe impl Promise for Promised {}

#[dlpack_pymethods]
#[pymethods]
impl Promised {
    #[new]
    fn new(promised: Imported<Self>) -> Self {
        promised.0
    }

    fn flipped(&self) -> PyResult<Self> {
        let from = View::<u8, 2, Self>::of(self)?;
        let from = from.as_slice()?;
        let pixels = SharedBuffer::filled(from.len(), |to| flip(from, to, self.dims[1]))?;
        let dims = self.dims;
        Ok(Self { pixels, dims })
    }

    fn sort(&self) -> PyResult<()> {
        let mut pixels = ViewMut::<u8, 1, Self>::of(&self.pixels)?;
        pixels.as_mut_slice()?.sort_unstable();
        Ok(())
    }

    /// Flips the image into another one, which must be other memory.
    fn flip_into(&self, to: &Self) -> PyResult<()> {
        let from = View::<u8, 1, Self>::of(&self.pixels)?;
        let mut to = ViewMut::<u8, 1, Self>::of(&to.pixels)?;
        flip(from.as_slice()?, to.as_mut_slice()?, self.dims[1]);
        Ok(())
    }

    /// Flips the image into an argument.
    fn flip_to(&self, mut to: ViewMut<u8, 2, Self>) -> PyResult<()> {
        let from = View::<u8, 1, Self>::of(&self.pixels)?;
        flip(from.as_slice()?, to.as_mut_slice()?, self.dims[1]);
        Ok(())
    }

    /// Without the promise there is only a view, not a slice, because other code may write.
    fn halve(&self) -> PyResult<u64> {
        let mut pixels = ViewMut::<u8, 2>::of(self)?;
        pixels.update(|pixel| pixel / 2);
        Ok(pixels.sum())
    }

    /// The errors of views of other values.
    #[staticmethod]
    fn errors() -> PyResult<Vec<String>> {
        let buffer = SharedBuffer::<u8>::zeroed(2)?;
        let tensor = buffer.clone().into_dlpack()?;
        let text = |error: Option<Error>| error.map_or(String::new(), |error| error.to_string());
        Ok(vec![
            text(View::<u8, 1>::of(&vec![1_u8]).err()),
            text(View::<f32, 1>::of(&buffer).err()),
            text(View::<u8, 2>::of(&buffer).err()),
            text(tensor.view().as_slice::<u8>().err()),
        ])
    }
}
