//! Conversion of a `Vec` to a [`SharedBuffer`] and back, without a copy.

use alloc::vec::Vec;

use crate::SharedBuffer;
use crate::element::Plain;
use crate::loan::access::Access;
use crate::memory::counted::Counted;

/// Takes over the memory of a vector. Nothing is copied. The memory is aligned as the vector aligned it.
///
/// ```
/// use dlpack_core::SharedBuffer;
///
/// let mut buffer = SharedBuffer::from(vec![1.0_f32, 2.0]);
/// assert_eq!(buffer.get(1), 2.0);
/// buffer.get_mut().expect("there is no other handle")[0] = 3.0;
/// assert_eq!(buffer.to_vec(), [3.0, 2.0]);
/// ```
///
/// # Panics
///
/// If the allocation of the reference count, a few words, fails.
impl<T: Plain> From<Vec<T>> for SharedBuffer<T> {
    fn from(mut elements: Vec<T>) -> Self {
        let (data, len) = (elements.as_mut_ptr(), elements.len());
        // The elements stay where they are when the vector is moved into its keepalive.
        let buffer = Self::from_keeper(elements, data, len, Access::Shared);
        let buffer = buffer.unwrap_or_else(|error| panic!("{error}"));
        buffer.into_own()
    }
}

impl<T: Plain> SharedBuffer<T> {
    /// Returns the vector that the buffer was made from, with its address and capacity, if this is the only handle to the whole
    /// buffer.
    ///
    /// ```
    /// use dlpack_core::{DLPack, SharedBuffer};
    ///
    /// let buffer = SharedBuffer::from(vec![1.0_f32, 2.0]);
    /// let array = buffer.clone().into_dlpack()?;
    /// let buffer = buffer.try_into_vec().unwrap_err();
    /// drop(array);
    /// assert_eq!(buffer.try_into_vec().unwrap(), [1.0, 2.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The buffer, if there is another handle or an export of it, or if its memory did not come in a `Vec<T>`.
    pub fn try_into_vec(mut self) -> Result<Vec<T>, Self> {
        let elements = self
            .get_mut()
            .map(|elements| (elements.as_ptr(), elements.len()));
        let vec = self.allocation.keeper.downcast_ref::<Vec<T>>();
        let is_whole = |vec: &Vec<T>| elements == Some((vec.as_ptr(), vec.len()));
        if !vec.is_some_and(is_whole) {
            return Err(self);
        }
        let vec = self
            .allocation
            .keeper
            .downcast()
            .ok()
            .map(Counted::into_value);
        match vec {
            Some(Ok(vec)) => Ok(vec),
            _ => unreachable!("`get_mut` found no other reference, and `downcast_ref` a vector"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::DLPack;

    #[test]
    fn a_vector_is_taken_over_where_it_lies() {
        let elements = vec![1_u32, 2, 3];
        let address = elements.as_ptr();
        let mut buffer = SharedBuffer::from(elements);
        assert_eq!(buffer.as_ptr().cast_const(), address);
        buffer.get_mut().unwrap()[0] = 7;
        let tensor = buffer.clone().into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        assert!(buffer.get_mut().is_none());
        buffer.set(1, 8);
        assert_eq!(tensor.view().to_vec::<u32>().unwrap(), [7, 8, 3]);
        drop(tensor);
        assert_eq!(buffer.get_mut().unwrap(), [7, 8, 3]);
    }

    #[test]
    fn an_empty_vector_is_an_empty_buffer() {
        let mut buffer = SharedBuffer::<bool>::from(vec![]);
        assert!(buffer.is_empty());
        assert!(buffer.get_mut().unwrap().is_empty());
        assert_eq!(buffer.into_dlpack().unwrap().view().shape(), [0]);
    }
}
