//! Extents and strides: what may name them, how they are kept, and the arithmetic over them.
//!
//! Numbers only, no memory. Here each number is checked by itself; whether strides lead outside the data is asked in
//! `describe::check` for a tensor of ours, and in `tensor::foreign` for somebody else's.
//!
//! ```text
//! [usize; 3] ─┐
//! Vec<i64> ───┼──[ Shape, Strides ]── Dims ──[ arithmetic ]── items, bytes, reach, overlap
//! (u32, u8) ──┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `shape` | what may name extents, strides and offsets, that each number can be one, and how many there are by their type |
//! | `dims` | any number of `i64`s, up to six of them inline (`InlineDims`) |
//! | `shape_strides` | shape and strides of one tensor |
//! | `extent` | which items and bytes a layout reaches, and whether two meet |
//! | `span` | the bytes of a strided array in memory, and whether two arrays may share one |
//! | `memory_order` | the axes in the order in which elements lie in memory |
//! | `cut` | parts of a layout: slices, single indices, other axes |

pub(crate) mod cut;
pub(crate) mod dims;
pub(crate) mod extent;
pub(crate) mod memory_order;
pub(crate) mod shape;
pub(crate) mod shape_strides;
pub(crate) mod span;

pub use dims::Dims;
pub use shape::{Int, Shape, Strides};

use core::{array::from_fn, marker::PhantomData};

use crate::layout::shape::{Fixed, Numbers, sealed::List};
use crate::{Error, Order};

/// A shape of `N` axes together with its strides, one `i64` an axis.
///
/// A field of this type can be both `shape` and `strides`. Since the lists lie in the struct in the form that
/// DLPack has, a binding can lend them as they are, without building a tensor of its own.
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
    /// The last axis moves fastest.
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
        Self::packed(shape, Order::C)
    }

    /// The first axis moves fastest.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Layout::column_major([2, 3, 4])?.strides(), &[1, 2, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::row_major`].
    pub fn column_major(shape: [usize; N]) -> Result<Self, Error> {
        Self::packed(shape, Order::F)
    }

    /// These strides, in elements; whether they stay inside the data is found out when it is described.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Layout::strided([2, 3], [8, 2])?.strides(), &[8, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadExtent`].
    pub fn strided(shape: [usize; N], strides: [i64; N]) -> Result<Self, Error> {
        let shape = array(&Dims::extents(&shape)?);
        Ok(Self { shape, strides })
    }

    #[inline(always)]
    fn numbers(&self, numbers: Numbers) -> &[i64; N] {
        match numbers {
            Numbers::Extents => &self.shape,
            Numbers::Strides => &self.strides,
        }
    }

    fn packed(shape: [usize; N], order: Order) -> Result<Self, Error> {
        let shape = Dims::extents(&shape)?;
        if extent::count(&shape).is_none() {
            return Err(Error::too_large(&shape));
        }
        let strides = array(&extent::packed(order, &shape, 1)?);
        let shape = array(&shape);
        Ok(Self { shape, strides })
    }

    /// The extents.
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

    /// The strides, in elements.
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

/// A list that has one number an axis.
fn array<const N: usize>(list: &Dims) -> [i64; N] {
    from_fn(|axis| list[axis])
}

impl<const N: usize> List for Layout<N> {
    type Rank = Fixed<N>;

    #[inline]
    fn read(&self, numbers: Numbers) -> Result<Dims, Error> {
        self.numbers(numbers).read(numbers)
    }
}

impl<const N: usize> Shape for Layout<N> {}
impl<const N: usize> Strides for Layout<N> {}

/// Whether shape and strides lie in a field in the form of DLPack, which only a [`Layout`] says of itself; read where
/// another call already complains that the field is no shape.
#[doc(hidden)]
pub struct LentLists<L: ?Sized>(PhantomData<L>);

impl<const N: usize> LentLists<Layout<N>> {
    /// They do.
    pub const LIE_THERE: bool = true;

    /// Shape and strides where they lie.
    pub fn of(layout: &Layout<N>) -> Option<(&[i64], &[i64])> {
        Some((&layout.shape, &layout.strides))
    }
}
