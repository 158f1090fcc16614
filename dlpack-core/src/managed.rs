//! [`Managed`]: a tensor that somebody exported, ours or foreign, and the duty to call its deleter once.
#![expect(
    unsafe_code,
    reason = "takes over, reads and releases tensors behind C pointers"
)]

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::{fmt, slice};

use crate::abi;
use crate::atomic::Word;
use crate::block::Kind;
use crate::descriptor::{Descriptor, packed_bytes};
use crate::device::Device;
use crate::dims::{Dims, MAX_RANK};
use crate::dtype::DataType;
use crate::element::Plain;
use crate::error::Error;
use crate::export::{self, DLPack};
use crate::extent;
use crate::fresh;
use crate::loan::Access;
use crate::request::{ExportRequest, LegacyPolicy, Plan, ReleasePolicy, Transfer, plan};
use crate::stream::rules::{Consumer, Queue, consumer};
use crate::version::{Abi, Version};
use crate::view::TensorRef;

/// An exported tensor, in the struct of either version, together with its memory.
///
/// Dropping it calls the deleter, on whatever thread that happens.
///
/// ```
/// use dlpack_core::{DLPack, Managed};
///
/// let exported: Managed = vec![1.0_f32, 2.0].into_dlpack()?;
/// // Over a C boundary and back.
/// let pointer = exported.into_raw();
/// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
/// let imported = unsafe { Managed::from_raw(pointer) }?;
/// assert_eq!(imported.view().as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Managed {
    tensor: Owned,
    /// Strides that the producer left out, computed from the shape (LAY-04).
    strides: Option<Box<[i64]>>,
    /// What is known of a tensor of ours beside what its struct says.
    ours: Option<Ours>,
    /// Whether others may write to the memory of a foreign tensor.
    shared: bool,
}

/// What an export from this crate remembers until it is given away as a pointer.
#[derive(Clone, Copy)]
pub(crate) struct Ours {
    pub(crate) kind: &'static Kind,
    pub(crate) legacy: LegacyPolicy,
    pub(crate) access: Access,
}

#[derive(Clone, Copy)]
enum Owned {
    Versioned(NonNull<abi::DLManagedTensorVersioned>),
    Legacy(NonNull<abi::DLManagedTensor>),
}

// SAFETY: DLPack lets a consumer use and release a tensor on any thread; for ours, owners are `Send`.
unsafe impl Send for Managed {}
// SAFETY: through a shared reference a `Managed` is only read.
unsafe impl Sync for Managed {}

static_assertions::assert_impl_all!(Managed: Send, Sync);

impl Managed {
    /// Takes over a tensor in the struct of DLPack 1.0 and later.
    ///
    /// Another major version is released without a look at anything else (ABI-07, NEG-12).
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
    /// let managed = unsafe { Managed::from_raw(pointer) }?;
    /// assert_eq!(managed.view().shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another major version, or a tensor that breaks the format or the limits of memory. The
    /// deleter has been called then.
    ///
    /// # Safety
    ///
    /// - `tensor` points to a struct whose owner hands it over: nobody else uses it or its lists, or
    ///   calls its deleter, and the deleter may be called on any thread.
    /// - Where the version is known, `shape` and `strides` are null or have `ndim` entries, and every
    ///   item that they reach from `data + byte_offset` is initialised memory of the device.
    /// - While the result lives, nobody writes to memory that the processor can read, unless through it;
    ///   or the caller calls [`Managed::shared`] before anything else.
    pub unsafe fn from_raw(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Result<Self, Error> {
        // SAFETY: the caller's contract is that of `try_from_raw`.
        unsafe { Self::try_from_raw(tensor) }.inspect_err(|_| {
            // SAFETY: the deleter is one of the fields that keep their place in every version.
            let deleter = unsafe { (*tensor.as_ptr()).deleter };
            if let Some(deleter) = deleter {
                // SAFETY: the caller hands over the tensor, and this is its one release.
                unsafe { deleter(tensor.as_ptr()) };
            }
        })
    }

    /// As [`Managed::from_raw`], but after an error the tensor is still the caller's.
    ///
    /// # Errors
    ///
    /// As [`Managed::from_raw`].
    ///
    /// # Safety
    ///
    /// As [`Managed::from_raw`].
    #[doc(hidden)]
    pub unsafe fn try_from_raw(
        tensor: NonNull<abi::DLManagedTensorVersioned>,
    ) -> Result<Self, Error> {
        // SAFETY: the caller hands over a struct of at least the fields that all versions share, of
        // which this is the first.
        let version = Version::from(unsafe { (*tensor.as_ptr()).version });
        if version.major != Version::CURRENT.major {
            return Err(Error::UnsupportedMajor {
                found: version,
                supported: Version::CURRENT,
            });
        }
        let mut managed = Self::whole(Owned::Versioned(tensor));
        match managed.check() {
            Ok(strides) => {
                managed.strides = strides;
                Ok(managed)
            }
            Err(error) => {
                managed.forget();
                Err(error)
            }
        }
    }

    /// Takes over a tensor in the struct from before DLPack 1.0.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: `pointer` comes from `into_legacy`, and nobody else has it.
    /// let managed = unsafe { Managed::from_legacy(pointer) }?;
    /// assert!(managed.view().is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A tensor that breaks the format or the limits of memory. The deleter has been called then.
    ///
    /// # Safety
    ///
    /// As [`Managed::from_raw`].
    pub unsafe fn from_legacy(tensor: NonNull<abi::DLManagedTensor>) -> Result<Self, Error> {
        let mut managed = Self::whole(Owned::Legacy(tensor));
        managed.strides = managed.check()?;
        Ok(managed)
    }

    /// The same tensor, with memory that all who get it may write: its elements are then read and written
    /// in atomic words, and never lent as a slice.
    ///
    /// This is how to take over a tensor from a language in which nobody can promise that a
    /// producer keeps its hands off what it has shared; and how to give away one that is writable in
    /// several hands. What is read-only stays so.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Error, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: `pointer` comes from `into_raw`, and nobody else has it.
    /// let managed = unsafe { Managed::from_raw(pointer) }?.shared();
    /// assert_eq!(managed.view().to_vec::<u8>()?, [1, 2]);
    /// assert_eq!(managed.view().as_slice::<u8>(), Err(Error::MayChange));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn shared(mut self) -> Self {
        let access = Access::Shared(self.word());
        match &mut self.ours {
            Some(ours) if ours.access == Access::Exclusive => ours.access = access,
            Some(_) => {}
            None => self.shared = true,
        }
        self
    }

    /// New memory of zeros in row-major order, 256-byte aligned, that all who get it may write.
    ///
    /// ```
    /// use dlpack_core::{DataType, Managed};
    ///
    /// let managed = Managed::zeroed(&[2, 3], DataType::F32)?;
    /// assert_eq!(managed.view().to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A negative extent, more bytes than memory has, or no memory.
    pub fn zeroed(shape: &[i64], dtype: DataType) -> Result<Self, Error> {
        fresh::zeroed(shape, dtype)
    }

    /// A tensor that was just made by this crate.
    #[inline]
    pub(crate) fn ours(tensor: NonNull<abi::DLManagedTensorVersioned>, ours: Ours) -> Self {
        Self {
            tensor: Owned::Versioned(tensor),
            strides: None,
            ours: Some(ours),
            shared: false,
        }
    }

    /// The same export in the legacy struct. Only for a block of ours.
    pub(crate) fn legacy_in_place(self) -> Self {
        let (Owned::Versioned(tensor), Some(ours)) = (self.tensor, self.ours) else {
            return self;
        };
        self.forget();
        // SAFETY: `to_legacy` belongs to this very block, which nobody else uses.
        Self::ours_in_legacy(unsafe { (ours.kind.to_legacy)(tensor) }, ours)
    }

    /// The same for a tensor in the legacy struct.
    #[inline]
    pub(crate) fn ours_in_legacy(tensor: NonNull<abi::DLManagedTensor>, ours: Ours) -> Self {
        Self {
            tensor: Owned::Legacy(tensor),
            strides: None,
            ours: Some(ours),
            shared: false,
        }
    }

    /// A tensor of ours that nobody has seen yet, in the form that the plan asks for.
    pub(crate) fn stamped(self, plan: &Plan) -> Result<Self, Error> {
        if plan.abi == Abi::Legacy {
            return Ok(if self.flags_matter() {
                // The plan shares only what the legacy struct can say.
                export::export_moved(self, &ExportRequest::default())?
            } else {
                self.legacy_in_place()
            });
        }
        if let Owned::Versioned(tensor) = self.tensor {
            // SAFETY: this is the one owner of a valid struct.
            unsafe { (*tensor.as_ptr()).flags = plan.flags };
        }
        Ok(self)
    }

    fn whole(tensor: Owned) -> Self {
        Self {
            tensor,
            strides: None,
            ours: None,
            shared: false,
        }
    }

    /// Gives up the tensor in the struct of DLPack 1.0 and later. A foreign tensor is wrapped if
    /// it is a legacy one, or lacks strides or a deleter.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_raw();
    /// // SAFETY: the pointer is valid until its deleter is called.
    /// assert_eq!(unsafe { pointer.as_ref() }.dl_tensor.ndim, 1);
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_raw(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a tensor has to be wrapped and there is no memory for the wrapper, of some hundred bytes.
    #[must_use = "the tensor is leaked unless its deleter is called"]
    pub fn into_raw(self) -> NonNull<abi::DLManagedTensorVersioned> {
        match self.tensor {
            Owned::Versioned(tensor) if self.is_complete() => {
                self.forget();
                return tensor;
            }
            _ => {}
        }
        let wrapped = export::export_moved_unasked(self)
            .expect("a checked tensor is described again without an error");
        wrapped.into_raw()
    }

    /// Gives up the tensor in the struct from before DLPack 1.0. Read-only data is copied, since
    /// that struct cannot say so, unless its producer said `legacy = "refuse"`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, Managed};
    ///
    /// let pointer = vec![1_u8, 2].into_dlpack()?.into_legacy()?;
    /// // SAFETY: nobody else has the pointer.
    /// drop(unsafe { Managed::from_legacy(pointer) }?);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LegacyReadOnly`], [`Error::LegacyPadded`], or a copy that cannot be made.
    pub fn into_legacy(self) -> Result<NonNull<abi::DLManagedTensor>, Error> {
        if let Owned::Legacy(tensor) = self.tensor {
            if !self.is_complete() {
                return export::export_moved_unasked(self)?
                    .legacy_in_place()
                    .into_legacy();
            }
            self.forget();
            return Ok(tensor);
        }
        if self.ours.is_some() && !self.flags_matter() {
            return self.legacy_in_place().into_legacy();
        }
        let request = ExportRequest {
            stream: export::unordered(self.view().device()),
            ..ExportRequest::default()
        };
        self.into_dlpack_with(&request)?.into_legacy()
    }

    /// Whether a consumer finds all that it may look for: we take a tensor without strides or without
    /// a deleter, but never hand one out (LAY-02, CAP-08).
    fn is_complete(&self) -> bool {
        let has_deleter = match self.tensor {
            Owned::Versioned(tensor) => {
                // SAFETY: this is the one owner of a valid struct.
                unsafe { (*tensor.as_ptr()).deleter.is_some() }
            }
            Owned::Legacy(tensor) => {
                // SAFETY: this is the one owner of a valid struct.
                unsafe { (*tensor.as_ptr()).deleter.is_some() }
            }
        };
        has_deleter && self.strides.is_none()
    }

    /// Whether the tensor says something that the legacy struct cannot.
    fn flags_matter(&self) -> bool {
        let view = self.view();
        view.is_read_only() || view.dtype().is_padded()
    }

    /// What the tensor is.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// assert_eq!(vec![1_u8, 2].into_dlpack()?.view().shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn view(&self) -> TensorRef<'_> {
        let tensor = self.tensor();
        let shape = list(tensor.shape, tensor.ndim);
        let strides = match &self.strides {
            Some(computed) => computed,
            None => list(tensor.strides, tensor.ndim),
        };
        let (flags, version) = self.header();
        let device = Device::from(tensor.device);
        let flag = |mask| flags & mask != 0;
        let mut view = TensorRef {
            data: tensor.data.cast(),
            byte_offset: tensor.byte_offset,
            shape,
            strides,
            dtype: DataType::from_abi(
                tensor.dtype,
                flag(abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED),
            ),
            device,
            read_only: flag(abi::DLPACK_FLAG_BITMASK_READ_ONLY) || version.is_none(),
            shared: self
                .access()
                .shared()
                .filter(|_| device.device_type.is_host_readable()),
            copied: flag(abi::DLPACK_FLAG_BITMASK_IS_COPIED),
            version,
            lifetime: PhantomData,
        };
        if device.device_type.is_addressable() && !view.data.is_null() {
            let offset = usize::try_from(tensor.byte_offset).unwrap_or(usize::MAX);
            view.data = view.data.wrapping_add(offset);
            view.byte_offset = 0;
        }
        view
    }

    /// The flags and the version, which only the versioned struct has.
    fn header(&self) -> (u64, Option<Version>) {
        match self.tensor {
            Owned::Versioned(tensor) => {
                // SAFETY: this is the one owner of a valid struct.
                let tensor = unsafe { tensor.as_ref() };
                (tensor.flags, Some(tensor.version.into()))
            }
            Owned::Legacy(_) => (0, None),
        }
    }

    fn tensor(&self) -> &abi::DLTensor {
        match self.tensor {
            Owned::Versioned(tensor) => {
                // SAFETY: this is the one owner of a valid struct, which lives as long as `self`.
                unsafe { &(*tensor.as_ptr()).dl_tensor }
            }
            Owned::Legacy(tensor) => {
                // SAFETY: as above.
                unsafe { &(*tensor.as_ptr()).dl_tensor }
            }
        }
    }

    /// Everything that later reads rely on (LAY-04, LAY-06, LAY-21, LAY-22, DTY-06, DTY-08, DEV-14).
    /// Gives the strides if the producer left them out.
    fn check(&self) -> Result<Option<Box<[i64]>>, Error> {
        let tensor = self.tensor();
        let malformed = |what, found| Err(Error::Malformed { what, found });
        let rank = match usize::try_from(tensor.ndim) {
            Ok(rank) if rank <= MAX_RANK => rank,
            Ok(found) => return Err(Error::TooManyAxes { found }),
            Err(_) => return malformed("ndim is negative", tensor.ndim.into()),
        };
        let device = Device::from(tensor.device);
        if !device.device_type.is_known() {
            return Err(Error::UnknownDevice { found: device });
        }
        if rank != 0 && tensor.shape.is_null() {
            return malformed("shape is null although ndim is not 0", tensor.ndim.into());
        }
        if !tensor.shape.is_aligned() || !tensor.strides.is_aligned() {
            return malformed("shape or strides are not aligned", 0);
        }
        let shape = list(tensor.shape, tensor.ndim);
        if let Some(axis) = shape.iter().position(|&extent| extent < 0) {
            return Err(Error::BadExtent {
                axis,
                found: shape[axis].into(),
            });
        }
        let (flags, _) = self.header();
        let padded = flags & abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
        let dtype = DataType::from_abi(tensor.dtype, padded);
        dtype.check()?;
        if packed_bytes(shape, dtype).is_none() {
            return Err(Error::TooLarge {
                shape: shape.to_vec(),
            });
        }

        let computed = (rank != 0 && tensor.strides.is_null()).then(|| {
            let mut strides = Dims::new();
            extent::push_row_major(&mut strides, shape, 1);
            Box::from(&strides[..])
        });
        if shape.contains(&0) {
            return Ok(computed);
        }
        if tensor.data.is_null() && device.device_type.is_addressable() {
            return malformed("data is null although there are elements", 0);
        }
        let strides = match &computed {
            Some(computed) => computed,
            None => list(tensor.strides, tensor.ndim),
        };
        if !fits_memory(tensor, shape, strides, dtype) {
            return malformed(
                "byte_offset and strides lead out of memory, byte_offset",
                i64::try_from(tensor.byte_offset).unwrap_or(i64::MAX),
            );
        }
        Ok(computed)
    }

    /// Who may write: to a foreign tensor only we may, by the contract of `from_raw`, unless it is
    /// known to be shared.
    fn access(&self) -> Access {
        match self.ours {
            Some(ours) => ours.access,
            None if self.shared => Access::Shared(self.word()),
            None => Access::Exclusive,
        }
    }

    /// The words in which the items of a shared foreign tensor are accessed.
    fn word(&self) -> Word {
        let tensor = self.tensor();
        let dtype = DataType::from_abi(tensor.dtype, false);
        let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
        let address = tensor.data.addr().wrapping_add(offset);
        Word::dividing(dtype.alignment(), address)
    }

    /// Whether the memory is this tensor's alone: nobody writes it but through it, nor reads it.
    pub(crate) fn is_sole(&self) -> bool {
        (self.ours).is_some_and(|ours| ours.access == Access::Exclusive)
    }

    /// The elements, for writing in place.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    ///
    /// let mut managed = vec![1_u8, 2].into_dlpack()?;
    /// managed.as_mut_slice::<u8>()?[0] = 9;
    /// assert_eq!(managed.view().as_slice::<u8>()?, [9, 2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TensorRef::as_slice`], and [`Error::ReadOnly`] (FLG-09).
    pub fn as_mut_slice<T: Plain>(&mut self) -> Result<&mut [T], Error> {
        let view = self.view();
        if view.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let len = view.slice_len::<T>()?;
        let data = view.data.cast::<T>();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: `slice_len` found `len` values of `T` at this aligned address, which the producer
        // lets us write. `&mut self` is the one way to them, by the contract of `from_raw`.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The stream that the memory is written on, if it is an export of ours that named one.
    fn stream(&self) -> Option<Queue> {
        let kind = self.ours?.kind;
        let context = match self.tensor {
            // SAFETY: this is the one owner of a valid struct.
            Owned::Versioned(tensor) => unsafe { (*tensor.as_ptr()).manager_ctx },
            // SAFETY: as above.
            Owned::Legacy(tensor) => unsafe { (*tensor.as_ptr()).manager_ctx },
        };
        // SAFETY: the context of the very block that the kind was made for.
        unsafe { (kind.stream)(context) }
    }

    /// Ends the duty to call the deleter.
    fn forget(self) {
        let mut this = ManuallyDrop::new(self);
        drop(this.strides.take());
    }
}

/// Whether every item has an address, counted from that of the first.
fn fits_memory(tensor: &abi::DLTensor, shape: &[i64], strides: &[i64], dtype: DataType) -> bool {
    let Some(reach) = extent::reach(shape, strides) else {
        return false;
    };
    let bits = i128::try_from(dtype.itemsize_bits()).unwrap_or(i128::MAX);
    let first = (i128::from(reach.min) * bits).div_euclid(8);
    let end = ((i128::from(reach.max) + 1) * bits + 7).div_euclid(8);
    let data = i128::try_from(tensor.data.addr()).unwrap_or(i128::MAX);
    let offset = i128::from(tensor.byte_offset);
    let limit = i128::try_from(isize::MAX).unwrap_or(i128::MAX);
    let memory_end = i128::try_from(usize::MAX).unwrap_or(i128::MAX);
    end - first <= limit
        && offset <= limit
        && data + offset + first >= 0
        && data + offset + end <= memory_end
}

/// The list behind a pointer of a tensor; empty where there is none.
fn list<'a>(start: *mut i64, ndim: i32) -> &'a [i64] {
    match usize::try_from(ndim) {
        Ok(len) if len > 0 && !start.is_null() => {
            // SAFETY: a tensor's lists are null or have `ndim` entries, which nobody changes while
            // its owner lives (`from_raw`); alignment was checked before the first call.
            unsafe { slice::from_raw_parts(start, len) }
        }
        _ => &[],
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        match self.tensor {
            Owned::Versioned(tensor) => {
                // SAFETY: this is the one owner of a valid struct.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                // CAP-09: no deleter means that there is nothing to release.
                if let Some(deleter) = deleter {
                    // SAFETY: ownership ends here, and this is the one release.
                    unsafe { deleter(tensor.as_ptr()) }
                }
            }
            Owned::Legacy(tensor) => {
                // SAFETY: this is the one owner of a valid struct.
                let deleter = unsafe { (*tensor.as_ptr()).deleter };
                if let Some(deleter) = deleter {
                    // SAFETY: ownership ends here, and this is the one release.
                    unsafe { deleter(tensor.as_ptr()) }
                }
            }
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Managed").field(&self.view()).finish()
    }
}

/// A tensor from elsewhere is exported again: its deleter runs when the new consumer is done.
impl DLPack for Managed {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let view = self.view();
        let access = self.access();
        Ok(Descriptor {
            data: view.data,
            byte_offset: view.byte_offset,
            shape: Dims::from(view.shape),
            strides: Dims::from(view.strides),
            dtype: view.dtype,
            device: view.device,
            stream: self.stream(),
            // What all may write to can also be written by whoever gets it from a shared reference.
            read_only: view.is_read_only() || !matches!(access, Access::Shared(_)),
            access: if view.is_read_only() {
                access.for_reading()
            } else {
                access.through_shared()
            },
            legacy: self.ours.map_or(LegacyPolicy::Copy, |ours| ours.legacy),
            release: ReleasePolicy::Safe,
            made: None,
            lifetime: PhantomData,
        })
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        let read_only = self.view().is_read_only();
        let access = self.access();
        let mut descriptor = self.describe()?;
        descriptor.read_only = read_only;
        descriptor.access = access;
        Ok(descriptor)
    }

    fn into_dlpack(self) -> Result<Self, Error> {
        match self.tensor {
            Owned::Versioned(_) => Ok(self),
            Owned::Legacy(_) => export::export_moved_unasked(self),
        }
    }

    fn into_dlpack_with(mut self, request: &ExportRequest) -> Result<Self, Error> {
        let subject = export::subject(&self.describe_mut()?);
        let plan = plan(request, &subject)?;
        let as_it_is = plan.abi == Abi::Versioned
            && matches!(self.tensor, Owned::Versioned(_))
            && plan.transfer == Transfer::Share
            && plan.device == subject.device
            && consumer(request, subject.device)? == Consumer::Unordered;
        if as_it_is {
            return Ok(self);
        }
        export::export_moved(self, request)
    }
}
