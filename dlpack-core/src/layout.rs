//! Shapes and strides: which types can hold them, how they are stored, and the arithmetic on them.
//!
//! This module handles numbers only, no memory. It validates each number by itself. Whether a tensor stays inside its memory is
//! checked in `describe::check` for exports, and in `tensor::foreign` for imports.
//!
//! ```text
//! [usize; 3] ─┐
//! Vec<i64> ───┼──[ Shape, Strides ]── Dims ──[ arithmetic ]── items, bytes, reach, overlap
//! (u32, u8) ──┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `shape` | the types that can be shapes, strides and offsets, the validation of each number, and the rank that a type implies |
//! | `dims` | a list of `i64`s, up to six of them inline (`InlineDims`) |
//! | `shape_strides` | shape and strides of one tensor |
//! | `extent` | which items and bytes a layout reaches, and whether items overlap |
//! | `span` | the bytes of a strided array in memory, and whether two arrays may share one |
//! | `memory_order` | the axes in the order in which elements lie in memory |
//! | `views` | views of a layout: slices, single indices, permuted and reshaped axes |

pub(crate) mod dims;
pub(crate) mod extent;
pub(crate) mod memory_order;
pub(crate) mod shape;
pub(crate) mod shape_strides;
pub(crate) mod span;
pub(crate) mod views;

pub use dims::Dims;
pub use shape::{Int, Shape, Strides};

use core::{array::from_fn, marker::PhantomData};

use crate::layout::shape::{FixedRank, NumberRole, sealed::List};
use crate::{Error, Order};

/// A shape of `N` axes together with its strides.
///
/// A field of this type can be both `shape` and `strides`. It stores them as `i64`, as DLPack does. So a binding can lend them
/// without copying them.
///
/// ```
/// use dlpack_core::{DLPack, Layout, SharedBuffer};
///
/// #[derive(DLPack)]
/// struct Frame {
///     #[dlpack(data)]
///     pixels: SharedBuffer<f32>,
///     #[dlpack(shape, strides)]
///     layout: Layout<2>,
/// }
///
/// let frame = Frame {
///     pixels: SharedBuffer::zeroed(6)?,
///     layout: Layout::column_major([2, 3])?,
/// };
/// assert_eq!(frame.describe()?.shape(), [2, 3]);
/// assert_eq!(frame.describe()?.strides(), [1, 2]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Layout<const N: usize> {
    shape: [i64; N],
    strides: [i64; N],
}

impl<const N: usize> Layout<N> {
    /// A row-major layout: the last axis varies fastest.
    ///
    /// ```
    /// use dlpack_core::{Error, Layout};
    ///
    /// assert_eq!(Layout::row_major([2, 3, 4])?.strides(), &[12, 4, 1]);
    /// assert!(matches!(Layout::row_major([usize::MAX]), Err(Error::BadExtent { axis: 0, .. })));
    /// assert!(matches!(Layout::row_major([1 << 40; 2]), Err(Error::TooLarge { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadExtent`] or [`Error::TooLarge`].
    pub fn row_major(shape: [usize; N]) -> Result<Self, Error> {
        Self::packed_in_order(shape, Order::C)
    }

    /// A column-major layout: the first axis varies fastest.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Layout::column_major([2, 3, 4])?.strides(), &[1, 2, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadExtent`] or [`Error::TooLarge`].
    pub fn column_major(shape: [usize; N]) -> Result<Self, Error> {
        Self::packed_in_order(shape, Order::F)
    }

    /// A layout with these strides, in elements. Whether they stay inside the data is checked when the tensor is described.
    ///
    /// ```
    /// use dlpack_core::{Error, Layout};
    ///
    /// assert_eq!(Layout::strided([2, 3], [8, 2])?.strides(), &[8, 2]);
    /// assert!(matches!(Layout::strided([2], [i64::MIN]), Err(Error::BadStride { axis: 0, .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadExtent`] or [`Error::BadStride`].
    pub fn strided(shape: [usize; N], strides: [i64; N]) -> Result<Self, Error> {
        let shape = dims_to_array(&Dims::extents(&shape)?);
        let strides = dims_to_array(&Dims::strides(&strides)?);
        Ok(Self { shape, strides })
    }

    fn packed_in_order(shape: [usize; N], order: Order) -> Result<Self, Error> {
        let shape = Dims::extents(&shape)?;
        if extent::count_items(&shape).is_none() {
            return Err(Error::too_large(&shape));
        }
        let strides = dims_to_array(&extent::packed_strides(order, &shape, 1)?);
        let shape = dims_to_array(&shape);
        Ok(Self { shape, strides })
    }

    /// The size of each axis.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Layout::row_major([2, 3])?.shape(), &[2, 3]);
    /// assert!(dlpack_core::Layout::row_major([])?.shape().is_empty());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[i64; N] {
        &self.shape
    }

    /// The stride of each axis, in elements.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Layout::row_major([4])?.strides(), &[1]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn strides(&self) -> &[i64; N] {
        &self.strides
    }
}

/// Converts a list of `N` numbers to an array.
fn dims_to_array<const N: usize>(list: &Dims) -> [i64; N] {
    from_fn(|axis| list[axis])
}

impl<const N: usize> List for Layout<N> {
    type Rank = FixedRank<N>;

    /// The numbers were checked when the layout was made. The extents are checked again for the compiler: it then knows that none is
    /// a placeholder.
    #[inline(always)]
    fn read(&self, numbers: NumberRole) -> Result<Dims, Error> {
        match numbers {
            NumberRole::Extents => self.shape.read(numbers),
            NumberRole::Strides => Dims::from(self.strides).check_allocated(),
        }
    }
}

impl<const N: usize> Shape for Layout<N> {}
impl<const N: usize> Strides for Layout<N> {}

/// Whether a field of type `L` stores shape and strides as `i64`, as DLPack does, so that they can be lent. Only a [`Layout`]
/// does. For other types the constants of `private::probe::ProbeDefaults` apply.
#[doc(hidden)]
pub struct LentLists<L: ?Sized>(PhantomData<L>);

impl<const N: usize> LentLists<Layout<N>> {
    /// Shape and strides can be lent.
    pub const LIE_THERE: bool = true;

    /// Shape and strides, borrowed from the field.
    pub fn of(layout: &Layout<N>) -> Option<(&[i64], &[i64])> {
        Some((&layout.shape, &layout.strides))
    }
}
