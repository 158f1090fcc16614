//! The fast paths of a description, for valid tensors of at most six axes: a second copy of the rules of `check` for bounds and
//! read-only tensors.
//!
//! ```text
//! describe_over ──▶ locate_packed ─┬─▶ locate_strided ──▶ describe_general (`check`)
//!                                  └─▶ describe_shaped (`check`), if nothing but a shape is given
//! ```
//!
//! Each fast path returns `None` for a case that it does not cover. `describe_general` has every rule and error. A test compares
//! the results.

use core::marker::PhantomData;

use crate::describe::check::{size_from_i64, size_to_i64};
use crate::describe::descriptor::{DescriptionSource, Descriptor};
use crate::describe::parts::{Annotation, Reading, StrideRule};
use crate::layout::Dims;
use crate::layout::dims::{INLINE, InlineDims};
use crate::layout::extent;
use crate::layout::shape::HOLE;
use crate::layout::shape_strides::ShapeStrides;
use crate::{Device, Error, Order, loan::LentMemory};

impl Annotation {
    /// Describes a tensor over memory, which the caller knows to be valid for `'a`.
    #[inline(always)]
    pub(super) fn describe_over<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let Some((shape, strides)) = self.locate_packed(&memory) else {
            if self.has_only_shape(&memory) {
                return self.describe_shaped(memory);
            }
            return self.describe_unpacked(memory);
        };
        let descriptor = Descriptor {
            data: memory.data,
            byte_offset: 0,
            dims: ShapeStrides::from_inline(shape.values, strides, shape.len),
            dtype: memory.dtype,
            device: memory.device,
            stream: None,
            read_only: self.read_only || memory.access.is_read_only(),
            access: memory.access,
            legacy: self.legacy,
            release: self.release,
            source: DescriptionSource::Memory,
            allocation: memory.allocation,
            lifetime: PhantomData,
        };
        // Neither value owns heap memory here. The compiler does not see this and would generate code that frees it.
        core::mem::forget(self);
        core::mem::forget(memory);
        Ok(descriptor)
    }

    /// Shape and strides, if the tensor is packed in C or F order from the start of its memory and has at most [`INLINE`] axes.
    /// Most tensors are like that. `None` for any other tensor and for every error; `describe_general` finds the error.
    ///
    /// Inlined into each description, so that the compiler can evaluate most conditions.
    #[inline(always)]
    fn locate_packed(&self, memory: &LentMemory) -> Option<(InlineDims, [i64; INLINE])> {
        let dtype = memory.dtype;
        let plain = self.reading.is_none()
            && self.offset == 0
            && self.byte_offset == 0
            && self.device.is_none_or(|given| given == memory.device)
            && self.stream.is_none()
            && memory.stream.is_none()
            && memory.layout.is_none()
            && memory.device.device_type.is_addressable()
            && memory.element * 8 == dtype.itemsize_bits() * memory.axes.count_items()
            && !memory.data.is_null()
            && memory.data.addr() % dtype.alignment() == 0;
        if !plain {
            return None;
        }
        let elements = memory.bytes.checked_div(memory.element)?;
        let mut shape = match &self.shape {
            Some(shape) => shape.inline_dims().fill_hole(elements)?,
            None if memory.bytes % memory.element == 0 => {
                InlineDims::single_axis(size_to_i64(elements))
            }
            None => return None,
        };
        let order = match &self.strides {
            StrideRule::Order(order) => *order,
            StrideRule::None | StrideRule::Elements(_) => Order::C,
            StrideRule::Bytes(_) => return None,
        };
        let mut strides =
            shape.packed_strides(order, size_to_i64(memory.axes.count_items()), elements)?;
        if let StrideRule::Elements(given) = &self.strides {
            let given = given.inline_dims();
            // Compared axis by axis: a comparison of arrays is a call, which would force these values into memory.
            let mut pairs = given.values.iter().zip(strides);
            let is_packed = pairs.all(|(given, stride)| *given == stride);
            if given.len != shape.len || memory.axes.len() != 0 || !is_packed {
                return None;
            }
        }
        let axes = memory.axes.extents().iter().zip(memory.axes.strides());
        for (&extent, &stride) in axes {
            *shape.values.get_mut(shape.len)? = extent;
            strides[shape.len] = stride;
            shape.len += 1;
        }
        Some((shape, strides))
    }

    #[inline(never)]
    fn describe_unpacked<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let reading = self.reading.unwrap_or(Reading::of_memory(&memory));
        let device = self.device.unwrap_or(memory.device);
        let Some(found) = self.locate_strided(&memory, &reading, device) else {
            return self.describe_general(memory);
        };
        let dims = ShapeStrides::from_inline(found.shape, found.strides, found.rank);
        let mut descriptor = self.new_descriptor(&memory, &reading, device, dims);
        if device.device_type.is_addressable() {
            descriptor.data = memory.data.wrapping_add(found.start);
        } else {
            descriptor.data = memory.data;
            descriptor.byte_offset = found.start as u64;
        }
        descriptor.read_only = found.read_only;
        Ok(descriptor)
    }

    /// Locates a tensor with any layout and offset, if its items are whole bytes and it has at most [`INLINE`] axes. `None` for
    /// every error, and for tensors that only `describe_general` covers, such as empty ones.
    #[inline(always)]
    fn locate_strided(
        &self,
        memory: &LentMemory,
        reading: &Reading,
        device: Device,
    ) -> Option<LocatedTensor> {
        let (dtype, element_bytes) = (reading.dtype, reading.element_bits / 8);
        let item_bytes = dtype.itemsize_bits() / 8;
        let reinterpreted = self.reading.is_some() && dtype != memory.dtype;
        let is_simple = (device == memory.device || memory.any_device)
            && memory.stream.is_none()
            && (!reinterpreted || (dtype.is_known() && reading.any_bits))
            && item_bytes > 0
            && dtype.itemsize_bits() == item_bytes * 8
            && element_bytes > 0
            && reading.element_bits == element_bytes * 8
            && !memory.data.is_null();
        if !is_simple {
            return None;
        }
        let pitch = if element_bytes == item_bytes {
            1
        } else {
            element_bytes / item_bytes
        };
        if pitch * item_bytes != element_bytes {
            return None;
        }
        let layout = memory.layout.as_ref();
        let first_element = layout.map_or(0, |layout| layout.first);
        let first_bytes = size_to_i64(first_element).checked_mul(size_to_i64(memory.element))?;
        let offset_bytes = self.offset.checked_mul(size_to_i64(element_bytes))?;
        let start = first_bytes
            .checked_add(offset_bytes)?
            .checked_add(self.byte_offset)?;
        let bytes = size_to_i64(memory.bytes);
        if !(0..=bytes).contains(&start) {
            return None;
        }
        if device.device_type.is_addressable()
            && memory.data.addr().wrapping_add(size_from_i64(start)) % dtype.alignment() != 0
        {
            return None;
        }

        let elements = || count_whole(size_from_i64(bytes - start), element_bytes);
        let mut shape = match (layout, &self.shape) {
            (None, None) => InlineDims::single_axis(size_to_i64(elements()?)),
            (None, Some(given)) => {
                let given = given.inline_dims();
                if given.has_hole() {
                    given.fill_hole(elements()?)?
                } else {
                    given
                }
            }
            (Some(layout), given) => {
                let known = layout.shape.inline_dims();
                let given = given.as_ref().map(Dims::inline_dims);
                if element_bytes != memory.element || !given.is_none_or(|it| known.agrees_with(it))
                {
                    return None;
                }
                known
            }
        };
        let known = layout.map(|layout| &layout.strides);
        let mut strides =
            self.inline_strides(&shape, known, size_to_i64(pitch), size_to_i64(item_bytes))?;
        shape.append(reading.axes.extents())?;
        strides.append(reading.axes.strides())?;
        if shape.len != strides.len {
            return None;
        }

        // The range of items that the axes reach, and whether each axis steps over everything that the axes after it reach.
        let (mut min, mut max, mut items, mut is_nested) = (0_i64, 0_i64, 1_i64, true);
        for (&extent, &stride) in shape.get()?.iter().zip(strides.get()?).rev() {
            if extent <= 0 || stride == HOLE {
                return None;
            }
            items = items.checked_mul(extent)?;
            is_nested &= extent == 1 || (stride > max && min == 0);
            let far = (extent - 1).checked_mul(stride)?;
            if far < 0 {
                min = min.checked_add(far)?;
            } else {
                max = max.checked_add(far)?;
            }
        }
        let item_bytes = size_to_i64(item_bytes);
        isize::try_from(items.checked_mul(item_bytes)?).ok()?;
        let lowest = start.checked_add(min.checked_mul(item_bytes)?)?;
        let end = start.checked_add(max.checked_add(1)?.checked_mul(item_bytes)?)?;
        if lowest < 0 || end > bytes {
            return None;
        }
        let read_only = self.read_only
            || memory.access.is_read_only()
            // A consumer could write bytes that are not a valid value of the lent type.
            || (reinterpreted && !memory.any_bits)
            // LAY-16: one write would show up in several elements.
            || (!is_nested && extent::may_overlap(shape.get()?, strides.get()?));
        Some(LocatedTensor {
            start: size_from_i64(start),
            shape: shape.values,
            strides: strides.values,
            rank: shape.len,
            read_only,
        })
    }

    /// The strides, in items, of the axes before those of the element.
    #[inline(always)]
    fn inline_strides(
        &self,
        shape: &InlineDims,
        known: Option<&Dims>,
        pitch: i64,
        item_bytes: i64,
    ) -> Option<InlineDims> {
        let scaled = |stride: i64| stride.checked_mul(pitch);
        let known = match known {
            Some(known) => Some(known.inline_dims().try_map(scaled)?),
            None => None,
        };
        let given = match (&self.strides, known) {
            (StrideRule::None, Some(known)) => return Some(known),
            (StrideRule::None, None) => shape.packed_dims(Order::C, pitch)?,
            (StrideRule::Order(order), _) => shape.packed_dims(*order, pitch)?,
            (StrideRule::Elements(given), _) => given
                .inline_dims()
                .filled_strides(shape, 1)?
                .try_map(scaled)?,
            (StrideRule::Bytes(given), _) => {
                let in_items =
                    |stride: i64| (stride % item_bytes == 0).then_some(stride / item_bytes);
                let given = given
                    .inline_dims()
                    .filled_strides(shape, item_bytes.checked_mul(pitch)?)?;
                given.try_map(in_items)?
            }
        };
        let agree = known.is_none_or(|known| known == given);
        agree.then_some(given)
    }
}

/// The result of [`Annotation::locate_strided`]: the start of the tensor in its memory, in bytes, and its axes.
struct LocatedTensor {
    start: usize,
    shape: [i64; INLINE],
    strides: [i64; INLINE],
    rank: usize,
    read_only: bool,
}

/// The number of elements that fill these bytes, or `None` if a part of an element is left.
fn count_whole(bytes: usize, element_bytes: usize) -> Option<usize> {
    (bytes % element_bytes == 0).then_some(bytes / element_bytes)
}

#[cfg(test)]
mod tests;
