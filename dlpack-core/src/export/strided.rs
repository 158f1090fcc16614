//! The door of memory that another protocol describes: in bytes, and by numbers of C.
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use crate::export::block::Unfinished;
use crate::export::dims_storage::Capacity;
use crate::layout::shape_strides::ShapeStrides;
use crate::layout::{Dims, dims::MAX_RANK};
use crate::loan::access::Access;
use crate::request::plan::{Subject, plan_unasked};
use crate::{DataType, Descriptor, Device, Error, LegacyPolicy, Managed};

/// An array on the host, as Python's buffer protocol describes one.
///
/// An item has a power of two bytes.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// The first item.
    pub data: *mut u8,
    /// The extents, one an axis.
    pub shape: &'a [isize],
    /// The strides in bytes, one an axis; nothing, if the items lie one after another in row-major order.
    pub strides: Option<&'a [isize]>,
    /// What an item is.
    pub dtype: DataType,
    /// Whether nobody may write through the tensor.
    pub read_only: bool,
}

/// A tensor over memory that `describe` finds, once `owner`, which keeps it, is at its final address. Others may write
/// there too, so it is [`shared`](Managed::shared).
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
/// What `describe` gives; and by way of `failed` a stride that is no multiple of an item, an array that breaks the limits
/// of memory or of DLPack, and that there is no memory. The owner is dropped then.
///
/// # Safety
///
/// Until `owner` is dropped, on whatever thread, every item that shape and strides reach from `data` may be read, and
/// written if the array is not read-only. Who else writes it is code in another language, or does so in atomic words.
#[inline]
pub unsafe fn keep_strided<'a, O: Send + 'static, E>(
    owner: O,
    describe: impl FnOnce(&'a mut O) -> Result<Strided<'a>, E>,
    failed: impl Fn(Error) -> E,
) -> Result<Managed, E> {
    let mut block = Unfinished::new(owner, Capacity::ANY).map_err(&failed)?;
    // SAFETY: what is described is last used right below, before the block becomes a tensor.
    let array = describe(unsafe { block.owner_in_place() })?;
    let lists = lists(&array).map_err(&failed)?;
    let plan = plan_unasked(&Subject {
        device: Device::CPU,
        dtype: array.dtype,
        read_only: array.read_only,
        copied: false,
        legacy: LegacyPolicy::Copy,
    });
    let mut tensor = Descriptor::over(array.data, lists, array.dtype, Access::Shared);
    // Through the door of foreign tensors, which has all the checks.
    // SAFETY: it is a valid struct, which nobody else has; the caller vouches for the memory.
    let tensor = unsafe { Managed::from_raw(block.fill(&mut tensor, &plan)) };
    tensor.map(Managed::shared).map_err(failed)
}

/// The extents, and the strides in items.
#[inline]
fn lists(array: &Strided<'_>) -> Result<ShapeStrides, Error> {
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
    // A stride along a single item leads nowhere.
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

    /// The tensor over ten numbers, and the owner beside it.
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
        // SAFETY: each test stays inside the ten numbers.
        let tensor = unsafe { keep_strided(Arc::clone(&owner), describe, |error| error) };
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
