//! New tensors for results, which are written before they are read.
#![expect(
    unsafe_code,
    reason = "allocates memory that is not initialised, and writes it"
)]

use dlpack_core::array::{ArrayMut, Rank};
use dlpack_core::binding::{Strided, UnownedArray};
use dlpack_core::element::Plain;
use dlpack_core::{DataType, Error, FromDLPack, Managed};
use pyo3::prelude::*;

use crate::exchange::foreign::ForeignTable;
use crate::view::{InPlace, ViewMut};

/// A new tensor, row-major, in host memory that may be written. Its memory may be uninitialised until all elements are written, so
/// nothing else is done with it.
pub(crate) struct NewTensor {
    tensor: Managed,
    is_zeroed: bool,
}

impl NewTensor {
    /// A tensor in memory of a library's allocator.
    pub(crate) fn of_library(
        py: Python<'_>,
        table: &ForeignTable,
        shape: &[i64],
        dtype: DataType,
    ) -> PyResult<Self> {
        // SAFETY: a `NewTensor` is written before it is read.
        let tensor = unsafe { table.allocate_tensor(py, shape, dtype) }?;
        let is_zeroed = false;
        Ok(Self { tensor, is_zeroed })
    }

    /// A tensor in memory of ours.
    pub(crate) fn in_own_memory(shape: &[i64], dtype: DataType) -> PyResult<Self> {
        let tensor = Managed::zeroed(shape, dtype)?;
        let is_zeroed = true;
        Ok(Self { tensor, is_zeroed })
    }

    /// Calls `write`, which writes all elements and reads none.
    ///
    /// # Errors
    ///
    /// Those of an argument of this type. The memory is not written then: an allocator may return the memory of an argument.
    fn write_elements<T: Plain, const N: usize, O: InPlace>(
        self,
        write: impl FnOnce(&mut ArrayMut<T, [i64; N]>),
    ) -> Result<ViewMut<T, N, O>, Error>
    where
        [i64; N]: Rank,
    {
        let mut view = ViewMut::from_dlpack(self.tensor)?;
        write(&mut view);
        Ok(view)
    }

    /// Writes the results of `next` to all elements, in row-major order.
    ///
    /// # Errors
    ///
    /// Those of [`write_elements`](Self::write_elements).
    pub(crate) fn fill_with<T: Plain, const N: usize, O: InPlace>(
        self,
        next: impl FnMut() -> T,
    ) -> Result<ViewMut<T, N, O>, Error>
    where
        [i64; N]: Rank,
    {
        self.write_elements(|array| array.fill_with(next))
    }

    /// Writes zeros to all elements.
    ///
    /// # Errors
    ///
    /// Those of [`write_elements`](Self::write_elements).
    pub(crate) fn write_zeros<T: Plain, const N: usize, O: InPlace>(
        self,
    ) -> Result<ViewMut<T, N, O>, Error>
    where
        [i64; N]: Rank,
    {
        let is_zeroed = self.is_zeroed;
        self.write_elements(|array: &mut ArrayMut<T, [i64; N]>| {
            if !is_zeroed {
                // SAFETY: the elements are contiguous, and may be written. All Rust code accesses them by atomics.
                unsafe {
                    write_zeros(
                        array.as_ptr().cast_mut().cast(),
                        size_of::<T>() * array.len(),
                    )
                };
            }
        })
    }
}

/// Writes zeros, as an array of bytes does.
///
/// # Safety
///
/// `bytes` may be written at `data`, as by an [`ArrayMut`].
unsafe fn write_zeros(data: *mut u8, bytes: usize) {
    let Some(bytes @ 1..) = isize::try_from(bytes).ok() else {
        return;
    };
    let memory = Strided {
        data,
        shape: &[bytes],
        strides: Some(&[1]),
        dtype: DataType::U8,
        read_only: false,
    };
    let memory = UnownedArray::<u8, [i64; 1]>::from_strided(&memory, true);
    let memory = memory.expect("contiguous bytes that the import checked");
    // SAFETY: by this function's contract the memory may be written until this function returns.
    unsafe { memory.into_view_mut(()) }.fill(0);
}
