//! Returns the `Vec` that a tensor was exported from, without a copy.

use alloc::vec::Vec;

use crate::Managed;
use crate::element::Plain;
use crate::export::recognize::{Block, take_owner_of_type};

impl Managed {
    /// Returns the vector that was moved into the tensor, with its address and capacity, if no other code has its memory.
    ///
    /// The tensor must be the whole vector, in order. Its shape may differ. [`TensorRef::to_vec`](crate::TensorRef::to_vec) copies
    /// the elements of any other tensor.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let samples = vec![1.0_f32, 2.0];
    /// let address = samples.as_ptr();
    /// let tensor = samples.into_dlpack()?;
    ///
    /// let samples: Vec<f32> = tensor.try_into_vec().expect("it came from a vector");
    /// assert_eq!(samples.as_ptr(), address);
    ///
    /// let tensor = [1.0_f32, 2.0].into_dlpack()?;
    /// let samples = match tensor.try_into_vec() {
    ///     Ok(samples) => samples,
    ///     Err(tensor) => tensor.view().to_vec::<f32>()?,
    /// };
    /// assert_eq!(samples, [1.0, 2.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The tensor, if it is not exactly a `Vec<T>` that was moved into it: if it has another owner (a struct, an `Arc`, an array of
    /// Python), is a part of the vector or in another order, was [shared](Managed::shared), or was passed on as a pointer.
    pub fn try_into_vec<T: Plain>(self) -> Result<Vec<T>, Self> {
        if is_whole_vec::<T>(&self) {
            take_owner_of_type(self)
        } else {
            Err(self)
        }
    }
}

/// Whether the owner of a tensor is a vector, and the tensor refers to each of its elements, in order.
fn is_whole_vec<T: Plain>(tensor: &Managed) -> bool {
    let view = tensor.view();
    // Checks the data type too, and that no other code writes: the bytes of `bool`s are valid, and stay so.
    let elements = view.as_slice::<T>();
    let owner = Block::of(tensor).and_then(|block| block.owner::<Vec<T>>());
    owner.is_some_and(|vec| {
        elements.is_ok_and(|found| {
            found.len() == vec.len() && (vec.is_empty() || found.as_ptr() == vec.as_ptr())
        })
    })
}
