//! Tensors over memory that is made for them: copies, and zeros.
#![expect(unsafe_code, reason = "copies between raw addresses")]

use crate::atomic::Word;
use crate::block::{Exported, Unfinished};
use crate::copy::gather;
use crate::descriptor::{Descriptor, packed_bytes};
use crate::device::Device;
use crate::dims::{Dims, Lists, MAX_RANK};
use crate::dtype::DataType;
use crate::error::Error;
use crate::extent;
use crate::loan::Access;
use crate::managed::Managed;
use crate::memory::AlignedBytes;
use crate::request::{LegacyPolicy, Plan, Subject, plan_unasked};
use crate::view::TensorRef;

/// A copy that nobody else holds (CPY-06), in row-major order, 256-byte aligned (CPY-14).
#[inline(always)]
pub(crate) fn copy_on_host(descriptor: &Descriptor<'_>, plan: &Plan) -> Result<Managed, Error> {
    let too_large = || Error::TooLarge {
        shape: descriptor.shape.to_vec(),
    };
    let bytes = packed_bytes(&descriptor.shape, descriptor.dtype).ok_or_else(too_large)?;
    let mut memory = AlignedBytes::new(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    if bytes != 0 {
        let data = memory.as_mut_ptr();
        let view = TensorRef::of(descriptor);
        match descriptor.dtype.itemsize() {
            Some(itemsize) if view.shared.is_some() => {
                view.check_words()?;
                // SAFETY: checked right above; `memory` is new and has room for every item.
                unsafe { view.copy_shared(itemsize, data) };
            }
            Some(itemsize) => {
                // SAFETY:
                // 1. the descriptor was checked: every item lies in memory that is lent for its
                //    lifetime, which includes this call, and that the processor can read (`plan`);
                // 2. `memory` has room for every item, and is new;
                // 3. nobody else has `memory`; the lender keeps writers away from the rest.
                unsafe {
                    gather(
                        descriptor.data,
                        &descriptor.shape,
                        &descriptor.strides,
                        itemsize,
                        data,
                    );
                }
            }
            None if view.shared.is_none() && view.is_contiguous() => {
                // SAFETY: items that share bytes and follow one another from the start of a byte
                // are those bytes, `bytes` of them; both sides as above.
                unsafe { core::ptr::copy_nonoverlapping(descriptor.data, data, bytes) };
            }
            None => {
                return Err(Error::NotContiguous {
                    shape: descriptor.shape.to_vec(),
                    strides: descriptor.strides.to_vec(),
                });
            }
        }
    }
    over_copy(memory, descriptor, plan)
}

/// New memory of zeros that all who get it may write.
pub(crate) fn zeroed(shape: &[i64], dtype: DataType) -> Result<Managed, Error> {
    dtype.check()?;
    let extents = Dims::extents(shape)?;
    if extents.len() > MAX_RANK {
        return Err(Error::TooManyAxes {
            found: extents.len(),
        });
    }
    let bytes = packed_bytes(&extents, dtype).ok_or_else(|| Error::TooLarge {
        shape: extents.to_vec(),
    })?;
    let mut memory = AlignedBytes::zeroed(bytes).map_err(|bytes| Error::OutOfMemory { bytes })?;
    let plan = plan_unasked(&Subject {
        device: Device::CPU,
        dtype,
        read_only: false,
        made: false,
        legacy: LegacyPolicy::Copy,
    });
    let mut tensor = in_row_major_order(&mut memory, &extents, dtype, &plan);
    tensor.access = Access::Shared(Word::dividing(dtype.alignment(), 0));
    Ok(Unfinished::new(memory)?.finish(tensor, &plan))
}

#[inline(always)]
pub(crate) fn over_copy(
    mut memory: AlignedBytes,
    descriptor: &Descriptor<'_>,
    plan: &Plan,
) -> Result<Managed, Error> {
    let mut tensor = in_row_major_order(&mut memory, &descriptor.shape, descriptor.dtype, plan);
    tensor.legacy = descriptor.legacy;
    Ok(Unfinished::new(memory)?.finish(tensor, plan))
}

/// The tensor over new memory of the host that has room for its items, one after another.
#[inline(always)]
fn in_row_major_order(
    memory: &mut AlignedBytes,
    shape: &Dims,
    dtype: DataType,
    plan: &Plan,
) -> Exported {
    let mut strides = Dims::new();
    extent::push_row_major(&mut strides, shape, 1);
    Exported {
        data: if memory.is_empty() {
            core::ptr::null_mut()
        } else {
            memory.as_mut_ptr()
        },
        byte_offset: 0,
        ndim: strides.len(),
        lists: Lists::new(shape, &strides),
        dtype: dtype.into(),
        device: plan.device.into(),
        legacy: LegacyPolicy::Copy,
        access: Access::Exclusive,
    }
}
