//! Tensors over memory that is made for them: copies, and zeros.
#![expect(unsafe_code, reason = "copies between raw addresses")]

use crate::describe::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DataType;
use crate::error::Error;
use crate::export::block::{Exported, Unfinished};
use crate::export::lists::Lists;
use crate::layout::dims::{Dims, MAX_RANK};
use crate::layout::extent::{self, packed_bytes};
use crate::loan::access::Access;
use crate::memory::aligned::AlignedBytes;
use crate::memory::atomic::Word;
use crate::memory::gather::gather;
use crate::request::LegacyPolicy;
use crate::request::plan::{Plan, Subject, plan_unasked};
use crate::tensor::managed::Managed;

impl Managed {
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
        zeroed(shape, dtype)
    }
}

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
        let view = descriptor.view();
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
fn zeroed(shape: &[i64], dtype: DataType) -> Result<Managed, Error> {
    if !dtype.is_known() {
        return Err(Error::UnknownDataType { found: dtype });
    }
    let extents = Dims::extents(shape)?;
    if extents.len() > MAX_RANK {
        return Err(Error::TooManyAxes {
            found: extents.len(),
            most: MAX_RANK,
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
