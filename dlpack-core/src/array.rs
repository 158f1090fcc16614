//! Typed arrays over the memory of a tensor: one element type and one rank, to read, write, slice and reduce.
//!
//! Data type, rank and device are checked once, when a view is made. After that only indices and shapes are checked.
//!
//! ```text
//! Managed ──[ View::new ]─────> View ────deref──> Array ───┬── at, iter, to_vec, as_slice
//!                                                   ▲      └── rows, slice, permute ──> Part ───deref──> Array
//!                                                 deref
//! Managed ──[ ViewMut::new ]──> ViewMut ─deref──> ArrayMut ┬── set, fill, update, as_mut_slice
//!                                                          └── rows_mut, slice_mut ──> PartMut ─deref──> ArrayMut
//! ```
//!
//! An `Array` has the address, shape and strides of elements, but does not keep them alive. So no function returns one by value:
//! code reaches it by a reference to a view, which owns the tensor, or to a part, which borrows from a view.
//!
//! | file | job |
//! |---|---|
//! | this file | `Array`, and the checks that make one from a tensor |
//! | `rank` | the types of shape, strides and index for each rank |
//! | `read` | data type, shape and strides, single elements, iteration and copies |
//! | `as_slice` | slices, and what matrices of other crates need to borrow the memory |
//! | `zip` | iterates over two arrays at once |
//! | `reduce` | `sum`, `min`, `max` and `dot`; `numbers` defines how each type of number is added and compared |
//! | `slicing` | parts: slices, rows, single indices, transposes and reshapes; `layout::views` computes them |
//! | `write` | `ArrayMut`: `set`, `fill`, `update` and copies |
//! | `in_place` | the loops of `write`, by cache lines or by blocks |
//! | `view` | `View` and `ViewMut`, which own the tensor or another keeper of the memory |
//! | `unowned` | arrays that a binding found in a tensor or in a buffer, before a view keeps the memory alive |
#![expect(unsafe_code, reason = "declares which arrays threads may share")]

pub(crate) mod as_slice;
pub(crate) mod in_place;
pub(crate) mod numbers;
pub(crate) mod rank;
pub(crate) mod read;
pub(crate) mod reduce;
pub(crate) mod slicing;
pub(crate) mod unowned;
pub(crate) mod view;
pub(crate) mod write;
pub(crate) mod zip;

pub use crate::tensor::array_element::ArrayElement;
pub use numbers::Number;
pub use rank::{Index, Rank};
pub use slicing::{Part, PartMut};

pub use view::{View, ViewMut};
pub use write::ArrayMut;
pub use zip::Pairs;

use core::{fmt, marker::PhantomData};

use crate::element::Plain;
use crate::layout::{extent, span::Span};
use crate::tensor::array_element::ElementAccess;
use crate::{Element, Error, Order, TensorRef};

/// Elements of type `T`, with shape and strides of type `L`: `[i64; N]` for `N` axes, [`Dims`](crate::layout::Dims) for any
/// number.
///
/// It has the methods that read. [`View`], [`ViewMut`] and [`Part`] dereference to it.
///
/// # Concurrent writes
///
/// Python code may write to memory that it passed to Rust. An element that is read during a write has the old value or the new
/// one, or bytes of both; nothing else can go wrong ([why](crate::soundness#who-may-write)). So elements are returned by value,
/// and as a slice only if no other code can write.
pub struct Array<T, L> {
    data: *mut u8,
    /// The shape, without the axes of the element.
    shape: L,
    /// The strides, in units of [`Self::UNIT`] bytes.
    strides: L,
    /// Whether other code may write to the memory. Elements are then read and written by the functions of `memory/atomic.rs`.
    shared: bool,
    elements: PhantomData<T>,
}

// SAFETY: a shared reference to an `Array` only reads elements. They are plain numbers, in memory without writers or read by
// `memory/atomic.rs`.
unsafe impl<T: ArrayElement, L: Sync> Sync for Array<T, L> {}
// SAFETY: an `Array` is an address and numbers, and elements are `Send` (`ArrayElement`).
unsafe impl<T: ArrayElement, L: Send> Send for Array<T, L> {}

impl<T: Plain, L: Rank> Array<T, L> {
    /// The array of a tensor in host memory.
    ///
    /// # Errors
    ///
    /// Another data type or rank, an element whose items are not contiguous, or memory that the CPU cannot read.
    pub(crate) fn from_tensor(tensor: &TensorRef<'_>) -> Result<Self, Error> {
        tensor.check_host_readable()?;
        Self::from_device_tensor(tensor)
    }

    /// The array of a tensor on any device. The caller must not read elements that the CPU cannot read.
    ///
    /// # Errors
    ///
    /// Another data type or rank, or an element whose items are not contiguous.
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
        // The strides of an empty array may be any numbers.
        if own > 0
            && !shape.contains(&0)
            && !extent::address_same_items(tail, steps, &extent::packed_strides(Order::C, tail, 1)?)
        {
            return Err(tensor.not_contiguous());
        }
        if size_of::<T>() == 0 && extent::count_items(shape).is_none() {
            return Err(Error::too_large(shape));
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
    /// An array of other elements of the same memory. `first` is the offset of its first element in units of [`Self::UNIT`] bytes.
    fn with_layout<M>(&self, first: isize, shape: M, strides: M) -> Array<T, M> {
        Array {
            data: self.data.wrapping_offset(first * Self::UNIT),
            shape,
            strides,
            shared: self.shared,
            elements: PhantomData,
        }
    }

    /// The unit of strides in bytes: the size of a scalar, or 1 for records.
    const UNIT: isize = T::Access::UNIT as isize;

    /// The size of an element in units of [`Self::UNIT`] bytes.
    const SCALARS: i64 = match T::Access::UNIT {
        0 => 1,
        bytes => (size_of::<T>() / bytes) as i64,
    };
}

/// The bytes that the elements of an array occupy.
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

/// Formats the data type of elements, or the names of their fields.
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
