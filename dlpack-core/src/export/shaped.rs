//! [`Shaped`]: a buffer and its shape, for a tensor that needs no struct of its own.

use crate::export::extras::{Extras, of_types};
use crate::layout::shape::StaticRank;
use crate::{Buffer, DLPack, Descriptor, Error, Parts, Shape};

/// A buffer with a shape, in row-major order.
///
/// ```
/// use dlpack_core::{DLPack, Shaped};
///
/// let matrix = Shaped::new(vec![1.0_f32; 6], [2, 3]).into_dlpack()?;
/// assert_eq!(matrix.view().shape(), [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// The shape is checked at the export. A buffer with more elements than the shape needs is accepted, as by the derive.
///
/// ```
/// use dlpack_core::{DLPack, Shaped};
///
/// let error = Shaped::new(vec![1, 2, 3, 4], [2, 3]).into_dlpack().unwrap_err();
/// assert_eq!(error.to_string(), "shape [2, 3] needs 6 elements, the data has 4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Shaped<B, S> {
    buffer: B,
    shape: S,
}

impl<B, S> Shaped<B, S> {
    /// Gives a buffer a shape: an array, a `Vec` or a tuple of integers.
    pub const fn new(buffer: B, shape: S) -> Self {
        Self { buffer, shape }
    }

    /// The buffer, without its shape.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Shaped::new(vec![1, 2], [2, 1]).into_buffer(), [1, 2]);
    /// ```
    pub fn into_buffer(self) -> B {
        self.buffer
    }
}

impl<B: Buffer, S: Shape + Send> DLPack for Shaped<B, S> {
    const EXTRAS: Extras<Self> = of_types(B::FACTS.rank(<S::Rank as StaticRank>::RANK));

    #[inline]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let parts = Parts::new().shape(&self.shape);
        parts.describe(self.buffer.lend())
    }

    #[inline]
    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        let parts = Parts::new().shape(&self.shape);
        parts.describe_mut(self.buffer.lend_mut())
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    crate::assert_exports!(Shaped<Vec<f32>, [usize; 2]>: f32, rank 2);

    #[test]
    fn a_buffer_gets_any_list_as_its_shape() {
        let shape = |tensor: Result<crate::Managed, Error>| tensor.unwrap().view().shape().to_vec();
        assert_eq!(
            shape(Shaped::new(vec![0_u8; 6], [2, 3]).into_dlpack()),
            [2, 3]
        );
        assert_eq!(
            shape(Shaped::new(vec![0_u8; 6], (1, 6)).into_dlpack()),
            [1, 6]
        );
        assert_eq!(
            shape(Shaped::new([0_u8; 6], vec![6_i64]).into_dlpack()),
            [6]
        );
        assert_eq!(
            shape(Shaped::new(vec![[0_u8; 3]; 4], [2, 2]).into_dlpack()),
            [2, 2, 3]
        );
        assert_eq!(
            shape(Shaped::new(Vec::<u8>::new(), [0, 5]).into_dlpack()),
            [0, 5]
        );
    }

    #[test]
    fn a_shape_that_the_buffer_cannot_fill_is_refused() {
        for shape in [[2, 4], [-2, -3], [i64::MAX, 2]] {
            assert!(
                Shaped::new(vec![0_u8; 6], shape).into_dlpack().is_err(),
                "{shape:?}"
            );
        }
    }

    #[test]
    fn the_moved_buffer_may_be_written() {
        let tensor = Shaped::new(vec![1_u8, 2], [2, 1]).into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        assert_eq!(Shaped::new([1_u8, 2], [2, 1]).into_buffer(), [1, 2]);
    }
}
