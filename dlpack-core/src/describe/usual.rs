//! The usual tensor, as plain values: packed in row-major order from the start of its memory, with few axes.
//!
//! Describing one fills a [`Descriptor`](crate::Descriptor), which has room for everything that a tensor can be, and
//! an export then reads it back: most of what an export costs. What is here is copied by value, has nothing to drop
//! and nothing on the heap, so the compiler keeps it in registers all the way into the exported block.
//!
//! It only ever says yes or "I do not know": whatever is unusual or wrong is `describe`'s to find out.

use core::marker::PhantomData;

use crate::layout::{dims::Few, dims::INLINE, shape::Numbers};
use crate::loan::{Loan, LoanMut, Memory};
use crate::request::plan::{Plan, Subject, plan_unasked};
use crate::{DataType, Device, LegacyPolicy, Shape, Strides};

/// A tensor that was found to reach nothing outside its memory.
#[derive(Clone, Copy, Debug)]
pub struct Usual<'a> {
    pub(crate) data: *mut u8,
    pub(crate) shape: [i64; INLINE],
    pub(crate) strides: [i64; INLINE],
    pub(crate) rank: usize,
    pub(crate) dtype: DataType,
    pub(crate) device: Device,
    pub(crate) read_only: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl Usual<'_> {
    /// The one test of what is usual: one item an element, packed in row-major order from the start of memory that has an address.
    #[inline(always)]
    pub(super) fn over(memory: &Memory, shape: Option<Few>, strides: Option<Few>) -> Option<Self> {
        let usual = memory.layout.is_none()
            && memory.device.device_type.is_addressable()
            && memory.axes.extents().is_empty()
            && memory.dtype.itemsize_bits() == memory.element * 8
            && !memory.data.is_null()
            && memory.data.addr() % memory.dtype.alignment() == 0;
        if !usual {
            return None;
        }
        let most = memory.bytes.checked_div(memory.element)?;
        let shape = match shape {
            Some(shape) => shape,
            None if memory.bytes % memory.element == 0 => Few::one(i64::try_from(most).ok()?),
            None => return None,
        };
        let packed = shape.packed_strides(most)?;
        if let Some(strides) = strides {
            // Both have zeros behind their last axis.
            if strides.len != shape.len || strides.values != packed {
                return None;
            }
        }
        Some(Self {
            data: memory.data,
            shape: shape.values,
            strides: packed,
            rank: shape.len,
            dtype: memory.dtype,
            device: memory.device,
            read_only: memory.access.is_read_only(),
            lifetime: PhantomData,
        })
    }

    /// How it is exported where nobody asks for anything in particular.
    #[inline(always)]
    pub(crate) fn plan(&self) -> Plan {
        plan_unasked(&Subject {
            device: self.device,
            dtype: self.dtype,
            read_only: self.read_only,
            copied: false,
            legacy: LegacyPolicy::Copy,
        })
    }

    /// Whether memory that is lent has every item.
    #[inline(always)]
    pub(crate) fn lies_in(&self, memory: &Memory) -> bool {
        let items = match self.shape() {
            [first, ..] => first * self.strides[0],
            [] => 1,
        };
        let bytes = (memory.element as u64).checked_mul(items as u64);
        memory.layout.is_none()
            && memory.data == self.data
            && bytes.is_some_and(|bytes| bytes <= memory.bytes as u64)
            && memory.dtype == self.dtype
            && memory.device == self.device
            && (self.read_only || !memory.access.is_read_only())
    }

    /// The extents, one an axis.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank]
    }

    /// The strides in items, one an axis.
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.rank]
    }

    /// The type of the items.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Where the memory lies.
    #[must_use]
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The address of the first element.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.data
    }

    /// Whether a consumer of this tensor must not write to it.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// Extents, for [`usual`].
#[inline(always)]
pub fn few<S: Shape + ?Sized>(shape: &S) -> Option<Few> {
    Some(shape.few(Numbers::Extents))
}

/// Strides, for [`usual`].
#[inline(always)]
pub fn few_strides<S: Strides + ?Sized>(strides: &S) -> Option<Few> {
    Some(strides.few(Numbers::Strides))
}

/// The tensor over memory that is lent, if it is of the usual kind and no stream has to be asked.
#[must_use]
#[inline(always)]
pub fn usual<'a>(loan: Loan<'a>, shape: Option<Few>, strides: Option<Few>) -> Option<Usual<'a>> {
    over(loan.memory, shape, strides)
}

#[inline(always)]
fn over<'a>(memory: Memory, shape: Option<Few>, strides: Option<Few>) -> Option<Usual<'a>> {
    if memory.layout.is_some() {
        discard(memory);
        return None;
    }
    // Without a layout there is nothing in it to drop, and without the code that would look for it the
    // compiler sees through.
    let memory = core::mem::ManuallyDrop::new(memory);
    let usual = Usual::over(&memory, shape, strides)?;
    usual.device.device_type.api().is_none().then_some(usual)
}

/// The same over memory that is lent for writing.
#[must_use]
#[inline(always)]
pub fn usual_mut<'a>(
    loan: LoanMut<'a>,
    shape: Option<Few>,
    strides: Option<Few>,
) -> Option<Usual<'a>> {
    over(loan.memory, shape, strides)
}

/// Drops it where that does not stand in the way of what is usual.
#[cold]
#[inline(never)]
fn discard(_: Memory) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Layout, Parts, export::extras};
    use alloc::{vec, vec::Vec};

    /// What both ways say, where the short one says anything.
    fn agree<S: Shape + ?Sized>(data: &Vec<f32>, shape: &S, strides: Option<&[i64]>) -> bool {
        let few_strides = strides.and_then(|strides| few_strides(&strides));
        let Some(usual) = usual(data.lend(), few(shape), few_strides) else {
            return false;
        };
        let mut parts = Parts::new().shape(shape);
        if let Some(strides) = strides {
            parts = parts.strides(strides);
        }
        let described = parts.describe(data.lend()).unwrap();
        assert_eq!(usual.as_ptr(), described.as_ptr());
        assert_eq!(usual.shape(), described.shape());
        assert_eq!(usual.strides(), described.strides());
        assert_eq!(usual.dtype(), described.dtype());
        assert_eq!(usual.device(), described.device());
        assert_eq!(usual.is_read_only(), described.is_read_only());
        true
    }

    #[test]
    fn the_usual_tensor_is_what_describing_says() {
        let data = vec![0.0_f32; 24];
        assert!(agree(&data, &[24_usize], None));
        assert!(agree(&data, &[2_u8, 3, 4], None));
        assert!(agree(&data, &(2_u32, 3_i64), None));
        assert!(agree(&data, &vec![1_i64, 2, 3, 1, 4, 1], None));
        assert!(agree(&data, &[] as &[usize; 0], None));
        assert!(agree(&data, &[2_usize, 3], Some(&[3, 1])));
        let layout = Layout::row_major([4, 3]).unwrap();
        assert!(agree(&data, &layout, Some(&[3, 1])));
    }

    /// Extents, and strides where they are given.
    type Case<'a> = (&'a [i64], Option<&'a [i64]>);

    /// Each is right in another way, or wrong; that is for `describe` to tell.
    #[test]
    fn whatever_is_unusual_is_left_to_describing() {
        let data = vec![0.0_f32; 24];
        let cases: [Case<'_>; 9] = [
            (&[0, 3], None),
            (&[-1, 3], None),
            (&[5, 5], None),
            (&[1 << 40, 1 << 40], None),
            (&[i64::MAX, 2], None),
            (&[1; 7], None),
            (&[2, 3], Some(&[1, 2])),
            (&[2, 3], Some(&[3])),
            (&[2, 3], Some(&[3, 1, 0])),
        ];
        for (shape, strides) in cases {
            let few_strides = strides.and_then(|strides| few_strides(&strides));
            let found = usual(data.lend(), few(&shape), few_strides);
            assert!(found.is_none(), "{shape:?} {strides:?}");
        }
        assert!(usual(data.lend(), few(&[usize::MAX]), None).is_none());
        assert!(usual(data.lend(), few(&[u128::MAX]), None).is_none());
        assert!(extras::usual(&Vec::<f32>::new()).is_none());
        assert!(extras::usual(&vec![[0.0_f32; 3]; 2]).is_none());
    }
}
