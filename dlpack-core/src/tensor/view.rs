//! A checked view of a tensor: its properties, and its elements as a slice, a vector or an iterator.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use alloc::vec::Vec;
use core::{marker::PhantomData, mem::size_of, mem::take, slice};

use crate::element::{Plain, Source};
use crate::layout::{Dims, extent};
use crate::memory::{aligned::allocate_vec, gather::gather_items};
use crate::tensor::accessors::accessors;
use crate::tensor::item_offsets::ItemOffsets;
use crate::tensor::items::Items;
use crate::{DataType, Device, Element, Error, Order, Version, error::text};

/// A view of a tensor that something else owns, usually a [`Managed`](crate::Managed).
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
    /// Whether the memory is shared with writers. If so, Rust code accesses it only by the functions of `memory/atomic.rs`.
    pub(crate) shared: bool,
    pub(crate) copied: bool,
    pub(crate) version: Option<Version>,
    pub(crate) lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: a `TensorRef<'a>` only reads bytes that the tensor's owner keeps alive for `'a`.
unsafe impl Send for TensorRef<'_> {}
// SAFETY: a `TensorRef<'a>` only reads bytes that the tensor's owner keeps alive for `'a`.
unsafe impl Sync for TensorRef<'_> {}

/// The number of elements of type `T` in this number of items.
pub(crate) fn count_elements<T: Element>(items: i64) -> usize {
    let items = usize::try_from(items).unwrap_or(0);
    items
        .checked_div(const { T::TRAILING.count_items() })
        .unwrap_or(0)
}

impl<'a> TensorRef<'a> {
    accessors!(&'a [i64], ".into_dlpack()?.view()", shape, strides);

    /// The DLPack version of the tensor; `None` for a legacy tensor.
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

    /// Whether the producer states that it copied the data for this consumer (the flag `IS_COPIED`).
    ///
    /// The flag proves nothing: a producer can set it and keep the memory, and other code in the producer's language may
    /// reach a copy that it made in good faith. So [`TensorRef::as_slice`] does not depend on it.
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

    /// Whether the items are contiguous in C order: without gaps, the last axis fastest.
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

    /// Whether the items are contiguous in Fortran order: without gaps, the first axis fastest.
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

    /// Borrows the elements as a slice, without a copy. An element with axes of its own, such as `[f32; 3]`, corresponds to
    /// the last axes of the shape.
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
    /// The tensor has another data type, or its last axes have other sizes than those of the element. The CPU cannot read the
    /// memory, or other code may write it. The elements are not contiguous in C order, the address is not aligned for `T`, or a
    /// byte is not a valid `bool`.
    pub fn as_slice<T: Plain>(&self) -> Result<&'a [T], Error> {
        let len = self.slice_len::<T>()?;
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: `slice_len` found `len` contiguous, host-readable values of `T` at this aligned address. Their owner keeps
        // them for `'a`, and by the contract of `Managed::from_raw` they are not written during `'a`, because the tensor is
        // not `shared`. Any bytes are a value of a `Plain` type, and `slice_len` checked the bytes of a `bool`.
        Ok(unsafe { slice::from_raw_parts(self.data.cast::<T>(), len) })
    }

    /// The length of a slice of `T` at `data`, or an error if the tensor is not such a slice.
    pub(crate) fn slice_len<T: Element>(&self) -> Result<usize, Error> {
        if let Some((shape, strides)) = self.split_into_groups::<T>()? {
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
        check_alignment(self.data.addr(), align_of::<T>(), self.dtype)?;
        self.check_contents::<T>()?;
        Ok(bytes / size_of::<T>())
    }

    /// Copies the elements to a vector, in C order, for any strides.
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
    /// The errors of [`TensorRef::as_slice`], except that strides and address are arbitrary and the memory may be shared;
    /// [`Error::OutOfMemory`].
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
        if let Some((shape, strides)) = self.split_into_groups::<T>()? {
            return self.with_axes(&shape, &strides).copy_to_vec(target);
        }
        self.check_type::<T>()?;
        let len = count_elements::<T>(extent::count_items(self.shape).unwrap_or(0));
        if len == 0 {
            *target = Vec::new();
            return Ok(());
        }
        let groups = self.merge_groups::<T::Scalar>()?;
        // Nothing can fail after the old elements are gone.
        let is_reused = T::PLAIN && T::ANY_BITS && target.len() == len;
        let mut elements = match is_reused {
            true => take(target),
            false => allocate_vec::<T>(len).map_err(|bytes| Error::OutOfMemory { bytes })?,
        };
        elements.clear();
        let (shape, strides) = match &groups {
            None => (self.shape, self.strides),
            Some((shape, strides)) => (&shape[..], &strides[..]),
        };
        let tensor = self.with_axes(shape, strides);
        if T::PLAIN {
            let (itemsize, place) = (size_of::<T::Scalar>(), elements.as_mut_ptr().cast());
            // SAFETY: `check_type` found items of `T` in host-readable memory. Items that share bytes are copied as whole
            // groups (`merge_groups`), which cover the same bytes. The vector has capacity for `len` elements, which are as many
            // bytes as all items have, and no other code accesses its buffer.
            unsafe { tensor.copy_items(itemsize, place) };
            if !T::ANY_BITS {
                // SAFETY: `copy_items` has just written this many bytes, and no other code accesses the vector.
                let bytes = unsafe { slice::from_raw_parts(place, len * size_of::<T>()) };
                check_bool_bytes(bytes.iter().copied())?;
            }
            // SAFETY: `copy_items` has just written `len` elements. Any items make a value (`PLAIN`), and the bytes of a
            // `bool` were checked in the vector, where other code cannot change them.
            unsafe { elements.set_len(len) };
            *target = elements;
            return Ok(());
        }
        self.check_contents::<T>()?;
        let mut items = tensor.iter_items::<T::Scalar>();
        let mut next = || {
            items
                .next()
                .expect("as many scalars as the elements have in all")
        };
        let mut source = Source::new(&mut next);
        elements.extend((0..len).map(|_| T::build_from(&mut source)));
        *target = elements;
        Ok(())
    }

    /// Returns an iterator over the items, in C order, for any strides.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let managed = [[1_u8, 2], [3, 4]].into_dlpack()?;
    /// assert_eq!(managed.view().iter::<u8>()?.sum::<u8>(), 10);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// It visits scalars. A [`View`](crate::array::View) also iterates over arrays, and over groups of items that share bytes:
    ///
    /// ```compile_fail,E0080
    /// use dlpack_core::DLPack;
    ///
    /// let managed = vec![[1_u8, 2]].into_dlpack()?;
    /// managed.view().iter::<[u8; 2]>()?;
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`TensorRef::to_vec`].
    pub fn iter<S: Plain>(&self) -> Result<Items<'a, S>, Error> {
        const {
            assert!(
                S::TRAILING.len() == 0,
                "`TensorRef::iter` visits scalars; read arrays such as `[f32; 3]`, and groups of small floats, with a `View` or `to_vec`"
            );
        }
        self.check_scalar::<S>()?;
        self.check_contents::<S>()?;
        Ok(self.iter_items())
    }

    /// Iterates over all items. The caller has checked that they are values of `S` and host-readable.
    fn iter_items<S: Plain>(&self) -> Items<'a, S> {
        Items {
            offsets: ItemOffsets::new(self.shape, self.strides, size_of::<S>()),
            data: self.data,
            shared: self.shared,
            lifetime: PhantomData,
        }
    }

    /// Shape and strides with the last axis split into groups, if the scalar of `T` is a group of items and `T` then fits:
    /// for example sixteen items that share bytes become eight pairs.
    pub(crate) fn split_into_groups<T: Element>(&self) -> Result<Option<(Dims, Dims)>, Error> {
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

    /// Shape and strides in groups of items, if the scalar `S` is a group. Items that share bytes cannot be addressed one by
    /// one.
    pub(crate) fn merge_groups<S: Element>(&self) -> Result<Option<(Dims, Dims)>, Error> {
        let own = const { S::TRAILING };
        if own.len() == 0 {
            return Ok(None);
        }
        let leading = self.shape.len().saturating_sub(own.len());
        let pitch = i64::try_from(own.count_items()).unwrap_or(i64::MAX);
        let mut strides = Dims::from(&self.strides[..leading]).check_allocated()?;
        let (tail, steps) = (&self.shape[leading..], &self.strides[leading..]);
        // The strides of an empty tensor may be any numbers.
        let is_empty = self.shape.contains(&0);
        let mut whole = tail == own.extents()
            && (is_empty || extent::address_same_items(tail, steps, own.strides()));
        for (stride, &extent) in strides.iter_mut().zip(self.shape) {
            whole = whole && (*stride % pitch == 0 || extent == 1 || is_empty);
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

    /// Returns the error for a tensor that is not contiguous.
    #[doc(hidden)]
    #[must_use]
    pub fn not_contiguous(&self) -> Error {
        Error::not_contiguous(self.shape, self.strides)
    }

    /// Returns a view of the same items with another shape and strides.
    pub(crate) fn with_axes(self, shape: &'a [i64], strides: &'a [i64]) -> Self {
        Self {
            shape,
            strides,
            ..self
        }
    }

    /// Copies every item to `to`, in C order. Memory that is shared with writers is read by atomic loads.
    ///
    /// # Safety
    ///
    /// The CPU can read the items, each of `itemsize` bytes. `to` is valid for writes of the size of all items, and no other
    /// code accesses it during the call.
    #[inline]
    pub(crate) unsafe fn copy_items(&self, itemsize: usize, to: *mut u8) {
        // SAFETY:
        // 1. by this function's contract all items are host-readable;
        // 2. by this function's contract `to` is valid for writes of that many bytes;
        // 3. no other code accesses `to`; items that are not `shared` have no writers, and Rust code writes to shared ones
        //    by atomics.
        unsafe {
            gather_items(
                self.data,
                self.shape,
                self.strides,
                itemsize,
                to,
                self.shared,
            )
        }
    }

    /// Checks that the items are those of `T` and host-readable.
    pub(crate) fn check_type<T: Element>(&self) -> Result<(), Error> {
        self.check_elements::<T>()?;
        self.check_host_readable()
    }

    /// Checks that the items have the dtype of `T`, and that the shape ends with the axes of `T`.
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
            check_axis_size(axis, self.shape[axis], needed)?;
        }
        Ok(())
    }

    /// Checks that the CPU can read the memory.
    pub(crate) fn check_host_readable(&self) -> Result<(), Error> {
        if self.device.device_type.is_host_readable() {
            return Ok(());
        }
        Err(Error::NotOnHost {
            device: self.device,
        })
    }

    fn check_scalar<S: Element>(&self) -> Result<(), Error> {
        if S::DTYPE != self.dtype {
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

    /// Checks that every item, which is one byte, is 0 or 1.
    pub(crate) fn check_bools(&self) -> Result<(), Error> {
        let once = extent::without_repeats(self.shape, self.strides)?;
        // An item of type `bool` is one byte.
        check_bool_bytes(self.with_axes(&once, self.strides).iter_items::<u8>())
    }
}

/// Checks that bytes are values of `bool`. The error has the first byte that is not.
fn check_bool_bytes(mut bytes: impl Iterator<Item = u8> + Clone) -> Result<(), Error> {
    // A maximum is vectorised, which a search for the first invalid byte is not.
    let largest = bytes.clone().fold(0, u8::max);
    if largest <= 1 {
        return Ok(());
    }
    // Shared memory may have been written since, so the search may find no such byte.
    let found = bytes.find(|&byte| byte > 1);
    Err(Error::NotBool {
        found: found.unwrap_or(largest),
    })
}

/// Checks that an address is aligned.
#[inline]
pub(crate) fn check_alignment(
    address: usize,
    alignment: usize,
    dtype: DataType,
) -> Result<(), Error> {
    if address % alignment == 0 {
        return Ok(());
    }
    Err(Error::Misaligned {
        address,
        alignment,
        dtype,
    })
}

/// Checks that an axis has the expected size.
pub(crate) fn check_axis_size(axis: usize, found: i64, needed: i64) -> Result<(), Error> {
    if found == needed {
        return Ok(());
    }
    Err(Error::Extent {
        axis,
        found,
        needed: text(needed)?,
    })
}
