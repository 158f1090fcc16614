//! Checks an imported struct before its elements are used: rank, shape, strides, data type, device and address.
#![expect(unsafe_code, reason = "reads the lists of a foreign tensor")]

use core::{ptr::NonNull, slice};

use crate::layout::dims::MAX_RANK;
use crate::layout::extent::{self, packed_bytes};
use crate::tensor::managed_facts::OwnLists;
use crate::{DataType, Device, DeviceType, Error, abi};

/// Checks everything that later reads rely on.
///
/// Returns lists that replace those of the struct: with `copies_lists`, or with strides in C order if the producer left them null.
///
/// # Safety
///
/// Shape and strides are null or have `ndim` entries, which do not change during the call.
// LAY-04, LAY-06, LAY-21, LAY-22, DTY-06, DTY-08, DEV-14
pub(crate) unsafe fn check_tensor(
    tensor: &abi::DLTensor,
    flags: u64,
    copies_lists: bool,
) -> Result<Option<OwnLists>, Error> {
    // SAFETY: by this function's contract the shape is null or has `ndim` entries.
    let shape = unsafe { read_shape(tensor) }?;
    // SAFETY: by this function's contract the strides are null or have `ndim` entries.
    let strides = unsafe { list_at(tensor.strides, tensor.ndim) }?;
    // Copied before the checks, which then hold for the copies, whatever the producer does.
    let lists = if copies_lists || strides.is_none() {
        Some(OwnLists::copy_of(shape, strides)?)
    } else {
        None
    };
    let (shape, strides) = match &lists {
        Some(lists) => lists.shape_and_strides(),
        None => (shape, strides.unwrap_or_default()),
    };
    let device = Device::from(tensor.device);
    if !device.device_type.is_known() {
        return Err(Error::UnknownDevice { found: device });
    }
    if let Some(axis) = shape.iter().position(|&extent| extent < 0) {
        let found = shape[axis].into();
        return Err(Error::BadExtent { axis, found });
    }
    let padded = flags & abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
    let dtype = DataType::from_abi(tensor.dtype, padded);
    if !dtype.is_known() {
        return Err(Error::UnknownDataType { found: dtype });
    }
    packed_bytes(shape, dtype).ok_or_else(|| Error::too_large(shape))?;

    if shape.contains(&0) {
        return Ok(lists);
    }
    if tensor.data.is_null() && device.device_type.is_addressable() {
        return reject_malformed("data is null although there are elements", 0);
    }
    if !fits_memory(tensor, shape, strides, dtype) {
        return reject_malformed(
            "byte_offset and strides lead out of memory, byte_offset",
            tensor.byte_offset,
        );
    }
    Ok(lists)
}

/// Checks that a struct is aligned, so that its fields can be read. A misaligned struct cannot even be released.
///
/// # Errors
///
/// [`Error::Malformed`], with the address.
pub fn check_aligned<T>(tensor: NonNull<T>) -> Result<(), Error> {
    if tensor.is_aligned() {
        return Ok(());
    }
    const { assert!(align_of::<T>() <= 8) };
    reject_malformed(
        "the address of the struct is no multiple of 8",
        tensor.as_ptr().addr(),
    )
}

#[cold]
pub(crate) fn reject_malformed<T>(
    what: &'static str,
    found: impl TryInto<i128>,
) -> Result<T, Error> {
    let found = found.try_into().unwrap_or(i128::MAX);
    Err(Error::Malformed { what, found })
}

/// Returns the shape of a tensor, with entries of any value. Reads only `shape` and `ndim`.
///
/// # Safety
///
/// The shape is null or has `ndim` entries, which do not change while the result is used.
pub(crate) unsafe fn read_shape(tensor: &abi::DLTensor) -> Result<&[i64], Error> {
    // SAFETY: by this function's contract the shape is null or has `ndim` entries.
    let shape = unsafe { list_at(tensor.shape, tensor.ndim) }?;
    shape.map_or_else(
        || reject_malformed("shape is null although ndim is not 0", tensor.ndim),
        Ok,
    )
}

/// Returns the shape or strides behind a pointer of a tensor, or `None` if the pointer is null and `ndim` is not 0.
///
/// # Errors
///
/// `ndim` is negative or above the supported maximum, or `start` is misaligned.
///
/// # Safety
///
/// `start` is null or has `ndim` entries, which do not change during `'a`.
#[inline]
pub unsafe fn list_at<'a>(start: *mut i64, ndim: i32) -> Result<Option<&'a [i64]>, Error> {
    let rank = usize::try_from(ndim).unwrap_or(usize::MAX);
    if rank > MAX_RANK || !start.is_aligned() {
        return reject_list(start, ndim);
    }
    let is_there = rank == 0 || !start.is_null();
    // SAFETY: by this function's contract the list is null or has `ndim` entries; it is aligned, as was just checked.
    Ok(is_there.then(|| unsafe { read_list(start, ndim) }))
}

#[cold]
fn reject_list<T>(start: *mut i64, ndim: i32) -> Result<T, Error> {
    match usize::try_from(ndim) {
        Err(_) => reject_malformed("ndim is negative", ndim),
        Ok(found) if found > MAX_RANK => Err(Error::TooManyAxes {
            found,
            most: MAX_RANK,
        }),
        Ok(_) => reject_malformed(
            "the address of shape or strides is no multiple of 8",
            start.addr(),
        ),
    }
}

/// Whether every item lies inside the address space; or, since a handle is no address, behind the start of its memory.
#[inline]
fn fits_memory(tensor: &abi::DLTensor, shape: &[i64], strides: &[i64], dtype: DataType) -> bool {
    let is_address = DeviceType(tensor.device.device_type).is_addressable();
    let fits = || {
        let reach = extent::reached_items(shape, strides)?;
        let bits = dtype.itemsize_bits();
        let first = extent::bytes_of_items(reach.min, bits, 0)?;
        let end = extent::bytes_of_items(reach.max, bits, bits + 7)?;
        isize::try_from(end.checked_sub(first)?).ok()?;
        let offset = isize::try_from(tensor.byte_offset).ok()?;
        let start = if is_address { tensor.data.addr() } else { 0 };
        let start = start.checked_add_signed(offset)?;
        start.checked_add_signed(isize::try_from(first).ok()?)?;
        start.checked_add_signed(isize::try_from(end).ok()?)
    };
    fits().is_some()
}

/// Returns the shape or strides behind a pointer of a tensor; empty if the pointer is null.
///
/// # Safety
///
/// `start` is null, or aligned and has `ndim` entries, which do not change during `'a`.
pub(super) unsafe fn read_list<'a>(start: *mut i64, ndim: i32) -> &'a [i64] {
    match usize::try_from(ndim) {
        Ok(len) if len > 0 && !start.is_null() => {
            // SAFETY: by this function's contract the list is aligned and has `ndim` entries.
            unsafe { slice::from_raw_parts(start, len) }
        }
        _ => &[],
    }
}
