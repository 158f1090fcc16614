//! A checked look at a tensor: what it is, and its elements as a slice, a vector or an iterator.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use alloc::vec::Vec;
use core::{marker::PhantomData, mem::size_of, mem::take, slice};

use crate::element::{Plain, Source};
use crate::layout::{Dims, extent};
use crate::memory::{aligned::room, gather::gather};
use crate::tensor::accessors::accessors;
use crate::tensor::items::{Items, Positions};
use crate::{DataType, Device, Element, Error, Order, Version, error::text};

/// A tensor that somebody else owns, most often a [`Managed`](crate::Managed).
///
/// ```
/// use dlpack_core::DLPack;
///
/// let managed = vec![[1_i32, 2], [3, 4]].into_dlpack()?;
/// let tensor = managed.view();
/// assert_eq!(tensor.shape(), [2, 2]);
/// assert_eq!(tensor.as_slice::<i32>()?, [1, 2, 3, 4]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    pub(crate) data: *mut u8,
    pub(crate) byte_offset: u64,
    pub(crate) shape: &'a [i64],
    pub(crate) strides: &'a [i64],
    pub(crate) dtype: DataType,
    pub(crate) device: Device,
    pub(crate) read_only: bool,
    /// Set where others may write meanwhile: then all Rust code accesses the memory as `memory/atomic.rs` does.
    pub(crate) shared: bool,
    pub(crate) copied: bool,
    pub(crate) version: Option<Version>,
    pub(crate) lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: a `TensorRef<'a>` only reads, and what it reads are bytes that its owner keeps for `'a`.
unsafe impl Send for TensorRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for TensorRef<'_> {}

/// How many `T` so many items make.
pub(crate) fn elements<T: Element>(items: i64) -> usize {
    let items = usize::try_from(items).unwrap_or(0);
    items
        .checked_div(const { T::TRAILING.items() })
        .unwrap_or(0)
}

impl<'a> TensorRef<'a> {
    accessors!(&'a [i64], ".into_dlpack()?.view()", shape, strides);

    /// The version stamped on the tensor; none on a legacy one.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Version};
    ///
    /// assert_eq!([0_u8; 3].into_dlpack()?.view().version(), Some(Version::CURRENT));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Whether the producer says that it copied the data for this consumer (the flag `IS_COPIED`).
    ///
    /// This is a statement and proves nothing: a producer can set the flag and keep the memory, and code of its language may
    /// reach a copy that it made in good faith. Whether elements are lent as a slice does not depend on it.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert!(!vec![0_u16; 3].into_dlpack()?.view().is_copied());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.copied
    }

    /// Whether the items lie one after another, the last axis fastest.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert!([[0_u16; 3]; 2].into_dlpack()?.view().is_contiguous());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        extent::is_packed(Order::C, self.shape, self.strides, 1)
    }

    /// Whether the items lie one after another, the first axis fastest.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert!([0_u16; 3].into_dlpack()?.view().is_column_major());
    /// assert!(![[0_u16; 3]; 2].into_dlpack()?.view().is_column_major());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn is_column_major(&self) -> bool {
        extent::is_packed(Order::F, self.shape, self.strides, 1)
    }

    /// The elements, without a copy. An element with axes of its own, such as `[f32; 3]`, takes
    /// them from the end of the shape.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = [1.5_f32, 2.5].into_dlpack()?;
    /// assert_eq!(managed.view().as_slice::<f32>()?, [1.5, 2.5]);
    /// assert!(managed.view().as_slice::<i32>().is_err());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another data type, memory that the processor cannot read or that others may write, gaps or
    /// another order, an address that is not aligned for `T`, or a byte that is no `bool`.
    pub fn as_slice<T: Plain>(&self) -> Result<&'a [T], Error> {
        let len = self.slice_len::<T>()?;
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: `slice_len` found `len` values of `T` at this aligned address: right type, one
        // after another, readable by the processor. Their owner keeps them for `'a`, and by the
        // contract of whoever made the owner nobody writes to them meanwhile. `Plain` types take any
        // bytes; those of a `bool` were looked at.
        Ok(unsafe { slice::from_raw_parts(self.data.cast::<T>(), len) })
    }

    /// How many `T` follow one another at `data`, if that is all that the tensor is.
    pub(crate) fn slice_len<T: Element>(&self) -> Result<usize, Error> {
        if let Some((shape, strides)) = self.grouped::<T>()? {
            return self.with_axes(&shape, &strides).slice_len::<T>();
        }
        self.check_type::<T>()?;
        if self.shared {
            return Err(Error::MayChange);
        }
        if !self.is_contiguous() {
            return Err(self.not_contiguous());
        }
        let bytes = self.len_bytes();
        if bytes == 0 || size_of::<T>() == 0 {
            return Ok(0);
        }
        aligned_to(self.data.addr(), align_of::<T>(), self.dtype)?;
        self.check_contents::<T>()?;
        Ok(bytes / size_of::<T>())
    }

    /// The elements, in order, whatever the strides.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = [[1_u8, 2], [3, 4]].into_dlpack()?;
    /// assert_eq!(managed.view().to_vec::<[u8; 2]>()?, [[1, 2], [3, 4]]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TensorRef::as_slice`], but any strides, any address and any memory of the processor will do.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        let mut elements = Vec::new();
        self.copy_to_vec(&mut elements)?;
        Ok(elements)
    }

    /// Replaces the elements of a vector by those of the tensor. If there are as many, their memory is reused.
    ///
    /// # Errors
    ///
    /// As [`TensorRef::to_vec`]. The vector is unchanged then.
    pub(crate) fn copy_to_vec<T: Element>(&self, target: &mut Vec<T>) -> Result<(), Error> {
        if let Some((shape, strides)) = self.grouped::<T>()? {
            return self.with_axes(&shape, &strides).copy_to_vec(target);
        }
        self.check_type::<T>()?;
        let len = elements::<T>(extent::count_items(self.shape).unwrap_or(0));
        if len == 0 {
            *target = Vec::new();
            return Ok(());
        }
        let groups = self.groups::<T::Scalar>()?;
        // Nothing can fail after the old elements are gone.
        let is_reused = T::PLAIN && T::ANY_BITS && target.len() == len;
        let mut elements = match is_reused {
            true => take(target),
            false => room::<T>(len).map_err(|bytes| Error::OutOfMemory { bytes })?,
        };
        elements.clear();
        let (shape, strides) = match &groups {
            None => (self.shape, self.strides),
            Some((shape, strides)) => (&shape[..], &strides[..]),
        };
        let tensor = self.with_axes(shape, strides);
        if T::PLAIN {
            let (itemsize, place) = (size_of::<T::Scalar>(), elements.as_mut_ptr().cast());
            // SAFETY: the items are those of `T`, in memory that the processor reads (`check_type`); of items that share
            // bytes, whole groups are copied (`groups`), which reach the same bytes. There is room for `len` elements, which
            // are as many bytes as all items, and nobody else has the vector.
            unsafe { tensor.copy_items(itemsize, place) };
            if !T::ANY_BITS {
                // SAFETY: so many bytes were just written, and nobody else has the vector.
                let bytes = unsafe { slice::from_raw_parts(place, len * size_of::<T>()) };
                are_bools(bytes.iter().copied())?;
            }
            // SAFETY: `len` elements were just written; any items make a value (`PLAIN`), those of a
            // `bool` were looked at where nobody changes them.
            unsafe { elements.set_len(len) };
            *target = elements;
            return Ok(());
        }
        self.check_contents::<T>()?;
        let mut items = tensor.items::<T::Scalar>();
        let mut next = || {
            items
                .next()
                .expect("as many scalars as the elements have in all")
        };
        let mut source = Source::new(&mut next);
        elements.extend((0..len).map(|_| T::build(&mut source)));
        *target = elements;
        Ok(())
    }

    /// The items, in order, whatever the strides.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = [[1_u8, 2], [3, 4]].into_dlpack()?;
    /// assert_eq!(managed.view().iter::<u8>()?.sum::<u8>(), 10);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TensorRef::to_vec`].
    pub fn iter<S: Plain>(&self) -> Result<Items<'a, S>, Error> {
        self.check_scalar::<S>()?;
        self.check_contents::<S>()?;
        Ok(self.items())
    }

    /// All items, of which the caller knows that they are `S` and that the processor can read them.
    fn items<S: Plain>(&self) -> Items<'a, S> {
        Items {
            positions: Positions::new(self.shape, self.strides, size_of::<S>()),
            data: self.data,
            shared: self.shared,
            lifetime: PhantomData,
        }
    }

    /// Shape and strides in which the last axis is cut into the groups that the scalar of `T` is, if
    /// that makes `T` fit: sixteen items that share bytes are eight pairs.
    pub(crate) fn grouped<T: Element>(&self) -> Result<Option<(Dims, Dims)>, Error> {
        let group = const { T::Scalar::TRAILING };
        let [items] = *group.extents() else {
            return Ok(None);
        };
        let fits = |shape: &[i64]| shape.ends_with(const { T::TRAILING }.extents());
        let ends = (self.shape.split_last(), self.strides.split_last());
        let (Some((&last, outer)), Some((&stride, steps))) = ends else {
            return Ok(None);
        };
        if fits(self.shape) || stride != 1 && last > 1 || last % items != 0 {
            return Ok(None);
        }
        let (mut shape, mut strides) = (Dims::from(outer), Dims::from(steps));
        shape.append(&[last / items, items])?;
        strides.append(&[items, 1])?;
        Ok(fits(&shape).then_some((shape, strides)))
    }

    /// Shape and strides in groups of items, where the scalar is such a group: items that share bytes
    /// cannot be reached one by one.
    pub(crate) fn groups<S: Element>(&self) -> Result<Option<(Dims, Dims)>, Error> {
        let own = const { S::TRAILING };
        if own.len() == 0 {
            return Ok(None);
        }
        let leading = self.shape.len().saturating_sub(own.len());
        let pitch = i64::try_from(own.items()).unwrap_or(i64::MAX);
        let mut strides = Dims::from(&self.strides[..leading]).check_allocated()?;
        let (tail, steps) = (&self.shape[leading..], &self.strides[leading..]);
        let mut whole =
            tail == own.extents() && extent::address_same_items(tail, steps, own.strides());
        for (stride, &extent) in strides.iter_mut().zip(self.shape) {
            whole = whole && (*stride % pitch == 0 || extent == 1);
            *stride /= pitch;
        }
        if !whole {
            return Err(self.not_contiguous());
        }
        Ok(Some((
            Dims::from(&self.shape[..leading]).check_allocated()?,
            strides,
        )))
    }

    /// Why such a tensor is no slice.
    #[doc(hidden)]
    #[must_use]
    pub fn not_contiguous(&self) -> Error {
        Error::not_contiguous(self.shape, self.strides)
    }

    /// The same memory under other axes, which reach the same items.
    pub(crate) fn with_axes(self, shape: &'a [i64], strides: &'a [i64]) -> Self {
        Self {
            shape,
            strides,
            ..self
        }
    }

    /// Copies every item, in order: atomically where others may be writing.
    ///
    /// # Safety
    ///
    /// The processor can read the items, each of `itemsize` bytes; `to` may be written for so many bytes as all have
    /// together, and nobody else has them.
    #[inline]
    pub(crate) unsafe fn copy_items(&self, itemsize: usize, to: *mut u8) {
        // SAFETY:
        // 1. whoever made the tensor knows all items to be readable from here;
        // 2. there is room for them, by the caller's promise;
        // 3. nobody touches the room, nor writes to what is not shared; to what is, Rust code does so atomically.
        unsafe {
            gather(
                self.data,
                self.shape,
                self.strides,
                itemsize,
                to,
                self.shared,
            )
        }
    }

    /// That the processor can read items that are those of `T`.
    pub(crate) fn check_type<T: Element>(&self) -> Result<(), Error> {
        self.check_elements::<T>()?;
        self.check_host_readable()
    }

    /// That the items are those of `T`, and its axes the last ones of the shape.
    pub(crate) fn check_elements<T: Element>(&self) -> Result<(), Error> {
        if T::DTYPE != self.dtype {
            return Err(Error::WrongDataType {
                found: self.dtype,
                needed: T::DTYPE,
            });
        }
        let trailing = T::TRAILING;
        let Some(leading) = self.shape.len().checked_sub(trailing.len()) else {
            return Err(Error::Rank {
                found: self.shape.len(),
                needed: trailing.len(),
            });
        };
        for (axis, &needed) in (leading..).zip(trailing.extents()) {
            same_extent(axis, self.shape[axis], needed)?;
        }
        Ok(())
    }

    /// That the processor can read what lies there.
    pub(crate) fn check_host_readable(&self) -> Result<(), Error> {
        if self.device.device_type.is_host_readable() {
            return Ok(());
        }
        Err(Error::NotOnHost {
            device: self.device,
        })
    }

    fn check_scalar<S: Element>(&self) -> Result<(), Error> {
        if S::DTYPE != self.dtype || S::TRAILING.len() != 0 {
            return Err(Error::WrongDataType {
                found: self.dtype,
                needed: S::DTYPE,
            });
        }
        self.check_host_readable()
    }

    fn check_contents<T: Element>(&self) -> Result<(), Error> {
        if T::ANY_BITS {
            return Ok(());
        }
        self.check_bools()
    }

    /// That every item, a byte each, is 0 or 1.
    pub(crate) fn check_bools(&self) -> Result<(), Error> {
        let once = extent::without_repeats(self.shape, self.strides)?;
        // An item that stands for a `bool` is a byte.
        are_bools(self.with_axes(&once, self.strides).items::<u8>())
    }
}

/// That bytes are values of `bool`; the first that is none if not.
fn are_bools(mut bytes: impl Iterator<Item = u8> + Clone) -> Result<(), Error> {
    // A search would look at them one by one.
    let largest = bytes.clone().fold(0, u8::max);
    if largest <= 1 {
        return Ok(());
    }
    // Others may have changed it since.
    let found = bytes.find(|&byte| byte > 1);
    Err(Error::NotBool {
        found: found.unwrap_or(largest),
    })
}

/// That the first element lies where it has to.
#[inline]
pub(crate) fn aligned_to(address: usize, alignment: usize, dtype: DataType) -> Result<(), Error> {
    if address % alignment == 0 {
        return Ok(());
    }
    Err(Error::Misaligned {
        address,
        alignment,
        dtype,
    })
}

/// That an axis is as long as it has to be.
pub(crate) fn same_extent(axis: usize, found: i64, needed: i64) -> Result<(), Error> {
    if found == needed {
        return Ok(());
    }
    Err(Error::Extent {
        axis,
        found,
        needed: text(needed)?,
    })
}
