//! Exports from a buffer-protocol description: byte strides and a C data pointer.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::marker::PhantomData;

use crate::export::block::UnfinishedExport;
use crate::export::dims_storage::Capacity;
use crate::layout::shape_strides::ShapeStrides;
use crate::layout::{Dims, dims::MAX_RANK};
use crate::loan::access::Access;
use crate::request::plan::plan_without_request;
use crate::tensor::foreign::check_tensor;
use crate::{DataType, Descriptor, Device, Error, Managed, TensorRef, Version, abi};

/// An array in host memory, as Python's buffer protocol describes it.
///
/// The size of an item is a power of two bytes.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// The address of the first item.
    pub data: *mut u8,
    /// The size of each axis.
    pub shape: &'a [isize],
    /// The stride of each axis in bytes; `None` if the array is contiguous in row-major order.
    pub strides: Option<&'a [isize]>,
    /// The data type of an item.
    pub dtype: DataType,
    /// Whether consumers must not write through the tensor.
    pub read_only: bool,
}

/// Exports memory that `describe` locates after `owner`, which keeps the memory alive, has moved to its final address. Other
/// code may write the memory too, so the tensor is [`shared`](Managed::shared).
///
/// ```
/// use dlpack_core::binding::{Strided, keep_strided};
/// use dlpack_core::{DataType, Error};
///
/// let describe = |owner: &mut [u16; 4]| {
///     let (data, dtype) = (owner.as_mut_ptr().cast(), DataType::U16);
///     Ok(Strided { data, shape: &[2, 2], strides: Some(&[2, 4]), dtype, read_only: true })
/// };
/// // SAFETY: the array lies in the tensor that keeps it.
/// let tensor = unsafe { keep_strided([1_u16, 2, 3, 4], describe, |error: Error| error) }?;
/// assert_eq!(tensor.view().strides(), [1, 2]);
/// assert_eq!(tensor.view().to_vec::<u16>()?, [1, 3, 2, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
///
/// The error that `describe` returns. Converted by `failed`: a stride that is no multiple of the item size, an array that
/// exceeds the limits of memory or of DLPack, or a failed allocation. The owner is dropped then.
///
/// # Safety
///
/// Until `owner` is dropped, on any thread, every item that shape and strides reach from `data` may be read, and written unless
/// the array is read-only. Other writers are code in another language, or Rust code that uses atomic accesses.
#[inline]
pub unsafe fn keep_strided<'a, O: Send + 'static, E>(
    owner: O,
    describe: impl FnOnce(&'a mut O) -> Result<Strided<'a>, E>,
    failed: impl Fn(Error) -> E,
) -> Result<Managed, E> {
    let mut block = UnfinishedExport::new(owner, Capacity::ANY).map_err(&failed)?;
    // SAFETY: the description is last used by `block.into_versioned` below, before the block becomes a tensor.
    let array = describe(unsafe { block.owner_in_place() })?;
    let lists = read_shape_strides(&array).map_err(&failed)?;
    let mut tensor = Descriptor {
        read_only: array.read_only,
        ..Descriptor::for_host_memory(array.data, lists, array.dtype, Access::Shared)
    };
    let plan = plan_without_request(&tensor.subject());
    // `from_raw` runs all checks that an imported tensor needs.
    // SAFETY: `into_versioned` returns a valid struct that is used only here; by this function's contract its items may be
    // read, and written unless it is read-only.
    let tensor = unsafe { Managed::from_raw(block.into_versioned(&mut tensor, &plan)) };
    tensor.map(Managed::shared).map_err(failed)
}

/// Calls `read` with a view of the array, without making a tensor. Other code may write the memory, so the view is shared with
/// writers.
///
/// ```
/// use dlpack_core::binding::{Strided, view_strided};
/// use dlpack_core::DataType;
///
/// let mut numbers = [1_u16, 2, 3, 4];
/// let (data, dtype) = (numbers.as_mut_ptr().cast(), DataType::U16);
/// let array = Strided { data, shape: &[2, 2], strides: Some(&[2, 4]), dtype, read_only: true };
/// // SAFETY: `numbers` has these items.
/// let read = unsafe { view_strided(&array, |view| view.to_vec::<u16>()) }?;
/// assert_eq!(read?, [1, 3, 2, 4]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`keep_strided`], except for a failed allocation.
///
/// # Safety
///
/// During the call every item that shape and strides reach from `data` may be read. Other writers are code in another language, or
/// Rust code that uses atomic accesses.
pub unsafe fn view_strided<R>(
    array: &Strided<'_>,
    read: impl FnOnce(&TensorRef<'_>) -> R,
) -> Result<R, Error> {
    let lists = read_shape_strides(array)?;
    let (shape, strides) = (lists.shape(), lists.strides());
    let tensor = abi::DLTensor {
        data: array.data.cast(),
        device: Device::CPU.into(),
        ndim: i32::try_from(shape.len()).expect("at most 64 axes"),
        dtype: array.dtype.into(),
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        byte_offset: 0,
    };
    // All checks that an imported tensor needs.
    // SAFETY: `lists` has `ndim` entries in each list.
    unsafe { check_tensor(&tensor, 0, false) }?;
    Ok(read(&TensorRef {
        data: array.data,
        byte_offset: 0,
        shape,
        strides,
        dtype: array.dtype,
        device: Device::CPU,
        read_only: array.read_only,
        shared: true,
        copied: false,
        version: Some(Version::CURRENT),
        lifetime: PhantomData,
    }))
}

/// Shape and strides, with the strides converted to items.
#[inline]
fn read_shape_strides(array: &Strided<'_>) -> Result<ShapeStrides, Error> {
    let (found, most, bits) = (array.shape.len(), MAX_RANK, array.dtype.itemsize_bits());
    if found > most {
        return Err(Error::TooManyAxes { found, most });
    }
    if !bits.is_power_of_two() || bits < 8 {
        let found = array.dtype;
        return Err(Error::UnknownDataType { found });
    }
    let Some(strides) = array.strides else {
        return ShapeStrides::row_major(&Dims::extents(array.shape)?);
    };
    let (found, needed) = (strides.len(), array.shape.len());
    if found != needed {
        return Err(Error::StrideCount { found, needed });
    }
    let (itemsize, axes) = (bits / 8, || array.shape.iter().zip(strides));
    // The stride of an axis of size 1 is never applied.
    let is_partial = |(&extent, &stride): (&isize, &isize)| {
        stride.unsigned_abs() & (itemsize - 1) != 0 && extent > 1
    };
    if let Some(axis) = axes().position(is_partial) {
        let found = strides[axis] as i64;
        return Err(Error::PartialStride {
            axis,
            found,
            itemsize,
        });
    }
    let in_items = |(&extent, &stride): (&isize, &isize)| {
        (extent as i64, (stride >> itemsize.trailing_zeros()) as i64)
    };
    ShapeStrides::from_axes(axes().map(in_items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{sync::Arc, vec::Vec};

    /// A tensor over ten numbers, and a clone of its owner.
    fn over<'a>(
        shape: &'a [isize],
        strides: Option<&'a [isize]>,
        dtype: DataType,
    ) -> (Result<Managed, Error>, Arc<[u32; 10]>) {
        let owner = Arc::new([0_u32, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let describe = |owner: &mut Arc<[u32; 10]>| {
            Ok(Strided {
                data: owner.as_ptr().cast_mut().cast(),
                shape,
                strides,
                dtype,
                read_only: true,
            })
        };
        let array = describe(&mut Arc::clone(&owner)).unwrap();
        let read = |view: &TensorRef<'_>| {
            let lists = (Vec::from(view.shape()), Vec::from(view.strides()));
            (lists, view.to_vec::<u32>())
        };
        // SAFETY: each test stays inside the ten numbers.
        let viewed = unsafe { view_strided(&array, read) };
        // SAFETY: each test stays inside the ten numbers.
        let tensor = unsafe { keep_strided(Arc::clone(&owner), describe, |error| error) };
        assert_eq!(
            viewed,
            tensor
                .as_ref()
                .map(|tensor| read(&tensor.view()))
                .map_err(Error::clone)
        );
        (tensor, owner)
    }

    #[test]
    fn strides_in_bytes_become_strides_in_items() {
        type Case<'a> = (&'a [isize], Option<&'a [isize]>, &'a [i64], &'a [u32]);
        let cases: [Case<'_>; 7] = [
            (&[3], Some(&[4]), &[1], &[0, 1, 2]),
            (&[2, 2], Some(&[4, 12]), &[1, 3], &[0, 3, 1, 4]),
            (&[2, 2], None, &[2, 1], &[0, 1, 2, 3]),
            (&[2, 3], Some(&[0, 8]), &[0, 2], &[0, 2, 4, 0, 2, 4]),
            (&[1, 2], Some(&[7, 4]), &[1, 1], &[0, 1]),
            (&[], None, &[], &[0]),
            (
                &[1, 1, 2, 1, 1, 1, 2],
                Some(&[4, 4, 8, 4, 4, 4, 4]),
                &[1, 1, 2, 1, 1, 1, 1],
                &[0, 1, 2, 3],
            ),
        ];
        for (shape, strides, items, values) in cases {
            let (tensor, owner) = over(shape, strides, DataType::U32);
            let tensor = tensor.unwrap();
            assert_eq!(tensor.view().strides(), items, "{shape:?} {strides:?}");
            assert_eq!(tensor.view().to_vec::<u32>().unwrap(), values);
            assert!(tensor.view().is_read_only());
            assert_eq!(Arc::strong_count(&owner), 2);
            drop(tensor);
            assert_eq!(Arc::strong_count(&owner), 1);
        }
    }

    #[test]
    fn items_of_a_byte_and_64_axes_are_the_limits() {
        let (tensor, _owner) = over(&[3], Some(&[2]), DataType::U8);
        assert_eq!(tensor.unwrap().view().strides(), [2]);
        let (tensor, _owner) = over(&[3], Some(&[2]), DataType::F4_E2M1FN);
        let found = DataType::F4_E2M1FN;
        assert_eq!(tensor.unwrap_err(), Error::UnknownDataType { found });
        let axes = [1; 65];
        let (tensor, _owner) = over(&axes[..64], Some(&axes[..64]), DataType::U8);
        assert_eq!(tensor.unwrap().view().shape(), [1; 64]);
        let (tensor, _owner) = over(&axes, Some(&axes), DataType::U8);
        let error = Error::TooManyAxes {
            found: 65,
            most: 64,
        };
        assert_eq!(tensor.unwrap_err(), error);
    }

    #[test]
    fn what_is_wrong_is_refused_and_the_owner_dropped() {
        let many: Vec<isize> = [1; 65].into();
        type Case<'a> = (&'a [isize], Option<&'a [isize]>, DataType);
        let cases: [Case<'_>; 8] = [
            (&[2], Some(&[6]), DataType::U32),
            (&[2, 2], Some(&[4]), DataType::U32),
            (&[-1], Some(&[4]), DataType::U32),
            (&[-1], None, DataType::U32),
            (&many, Some(&many), DataType::U8),
            (&[isize::MAX, 2], None, DataType::U32),
            (
                &[2, 2],
                Some(&[isize::MAX - 3, isize::MAX - 3]),
                DataType::U32,
            ),
            (&[1], Some(&[3]), DataType::U8.with_lanes(3)),
        ];
        for (shape, strides, dtype) in cases {
            let (tensor, owner) = over(shape, strides, dtype);
            assert!(tensor.is_err(), "{shape:?} {strides:?}");
            assert_eq!(Arc::strong_count(&owner), 1, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn who_cannot_describe_is_believed() {
        let owner = Arc::new(());
        let describe = |_: &mut Arc<()>| Err("no");
        // SAFETY: nothing is described.
        let refused = unsafe { keep_strided(Arc::clone(&owner), describe, |_| "failed") };
        assert_eq!(refused.unwrap_err(), "no");
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
