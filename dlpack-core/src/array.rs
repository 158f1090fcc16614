//! Arrays of one element type and one rank, over tensors of anybody: to read, to write, and to cut.
//!
//! What a tensor is was asked once, when the array was made. From then on there is nothing to refuse but an index.
//!
//! ```text
//! Managed ──[ View::new ]─────> View ────deref──> Array ───┬── at, iter, to_vec, as_slice
//!                                                   ▲      └── rows, slice, permute ──> Part ───deref──> Array
//!                                                 deref
//! Managed ──[ ViewMut::new ]──> ViewMut ─deref──> ArrayMut ┬── set, fill, update, as_mut_slice
//!                                                          └── rows_mut, slice_mut ──> PartMut ─deref──> ArrayMut
//! ```
//!
//! An `Array` says where elements are and nothing of what keeps them. So it is only ever reached through a reference to
//! what does: a view, which has the tensor, or a part, which has a borrow of it.
//!
//! | file | job |
//! |---|---|
//! | this one | `Array`, and how one is made of a tensor: type, rank and the axes of an element are checked |
//! | `rank` | the lists in which a rank keeps its extents, and what an index is |
//! | `read` | what any array can be asked |
//! | `reduce` | sums, extremes and products of elements, by `numbers`: how numbers are added and compared |
//! | `slicing` | parts: slices, rows, single indices, other axes; the arithmetic of it is `layout::views` |
//! | `write` | arrays that may be written |
//! | `in_place` | changes elements where they lie: by cache lines, or by blocks |
//! | `view` | the two that own their tensor, or what else keeps the memory |
//! | `unowned` | what a binding makes them of: arrays of tensors, or of what another protocol describes in bytes |
#![expect(unsafe_code, reason = "says which addresses threads may share")]

pub(crate) mod in_place;
pub(crate) mod numbers;
pub(crate) mod rank;
pub(crate) mod read;
pub(crate) mod reduce;
pub(crate) mod slicing;
pub(crate) mod unowned;
pub(crate) mod view;
pub(crate) mod write;

pub use crate::tensor::array_element::ArrayElement;
pub use numbers::Number;
pub use rank::{Index, Rank};
pub use slicing::{Part, PartMut};

pub use view::{View, ViewMut};
pub use write::ArrayMut;

use core::{fmt, marker::PhantomData};

use crate::element::Plain;
use crate::layout::{extent, span::Span};
use crate::tensor::array_element::ElementAccess;
use crate::{Element, Error, Order, TensorRef};

/// Elements of type `T` over the axes of `L`: `[i64; N]` for `N` of them, [`Dims`](crate::layout::Dims) for any number.
///
/// All that can be read of a [`View`], a [`ViewMut`] or a [`Part`], which lead here.
///
/// # Others may write meanwhile
///
/// Memory that comes from Python belongs to several. What is read here while somebody writes there is a mixture of old
/// and new values, in no particular order, and nothing worse ([why](crate::soundness#who-may-write)). So elements come
/// out as values, and a slice only where nobody else can write.
pub struct Array<T, L> {
    data: *mut u8,
    /// The extents, without those of the element.
    shape: L,
    /// How many scalars lie between neighbours.
    strides: L,
    /// Others may write.
    shared: bool,
    elements: PhantomData<T>,
}

// SAFETY: an `Array` is reached by reference only, and through it elements are read: plain numbers, in memory that nobody
// writes, or as `memory/atomic.rs` does.
unsafe impl<T: ArrayElement, L: Sync> Sync for Array<T, L> {}
// SAFETY: as above; it is an address and numbers.
unsafe impl<T: ArrayElement, L: Send> Send for Array<T, L> {}

impl<T: Plain, L: Rank> Array<T, L> {
    /// The array that a tensor is, for the processor.
    ///
    /// # Errors
    ///
    /// Another data type or rank, an element with gaps, or memory that the processor cannot read.
    pub(crate) fn from_tensor(tensor: &TensorRef<'_>) -> Result<Self, Error> {
        tensor.check_host_readable()?;
        Self::from_device_tensor(tensor)
    }

    /// The same wherever it lies. Who has such an array must not read by it what the processor cannot read.
    ///
    /// # Errors
    ///
    /// Another data type or rank, or an element with gaps.
    pub(crate) fn from_device_tensor(tensor: &TensorRef<'_>) -> Result<Self, Error> {
        let in_groups = tensor.split_into_groups::<T>()?;
        let tensor = in_groups
            .as_ref()
            .map_or(*tensor, |(shape, strides)| tensor.with_axes(shape, strides));
        tensor.check_elements::<T>()?;
        let groups = tensor.merge_groups::<T::Scalar>()?;
        let (shape, strides) = groups
            .as_ref()
            .map_or((tensor.shape, tensor.strides), |(shape, strides)| {
                (&shape[..], &strides[..])
            });
        let own = const { T::TRAILING.len() - T::Scalar::TRAILING.len() };
        let (shape, tail) = shape.split_at(shape.len() - own);
        let (strides, steps) = strides.split_at(shape.len());
        if own > 0
            && !extent::address_same_items(tail, steps, &extent::packed_strides(Order::C, tail, 1)?)
        {
            return Err(tensor.not_contiguous());
        }
        let (lists, strides) = (L::from_slice(shape)?, L::from_slice(strides)?);
        Ok(Self {
            data: tensor.data,
            shape: lists,
            strides,
            shared: tensor.shared,
            elements: PhantomData,
        })
    }
}

impl<T: ArrayElement, L: Rank> Array<T, L> {
    /// Other elements of the same memory.
    fn with_layout<M>(&self, first: isize, shape: M, strides: M) -> Array<T, M> {
        Array {
            data: self.data.wrapping_offset(first * Self::UNIT),
            shape,
            strides,
            shared: self.shared,
            elements: PhantomData,
        }
    }

    /// The bytes of a scalar, which is what strides count; a record counts in single bytes.
    const UNIT: isize = T::Access::UNIT as isize;

    /// The scalars in an element.
    const SCALARS: i64 = match T::Access::UNIT {
        0 => 1,
        bytes => (size_of::<T>() / bytes) as i64,
    };
}

/// Where the elements of an array lie.
#[inline]
fn span_of<T: ArrayElement, L: Rank>(array: &Array<T, L>) -> Span {
    Span::new(
        array.data.addr(),
        array.shape.as_ref(),
        array.strides.as_ref(),
        T::Access::UNIT,
        size_of::<T>(),
    )
}

impl<T: ArrayElement, L: Rank> fmt::Debug for Array<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("dtype", &ElementDebug::<T>(PhantomData))
            .field("shape", &self.shape.as_ref())
            .field("strides", &self.strides.as_ref())
            .finish_non_exhaustive()
    }
}

/// The data type of elements, or the names of their fields, for `{:?}`.
struct ElementDebug<T>(PhantomData<T>);

impl<T: ArrayElement> fmt::Debug for ElementDebug<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match T::Access::RECORD {
            None => T::Access::DTYPE.fmt(f),
            Some(record) => {
                let names = record.fields().iter().map(|field| field.name());
                f.debug_set().entries(names).finish()
            }
        }
    }
}
