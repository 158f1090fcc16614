//! The fast paths of a description, for valid tensors of at most six axes: a second copy of the rules of `check` for bounds and
//! read-only tensors.
//!
//! ```text
//! describe_over ──▶ locate_packed ─┬─▶ describe_placed
//!                                  └─▶ describe_shaped (`check`), if nothing but a shape is given
//! describe_placed ──▶ locate_packed ──▶ place_packed or place_strided ──▶ describe_general (`check`)
//! ```
//!
//! Derived code calls `describe_placed` if a declaration has an offset, a data type or strides, and so does a buffer with its own
//! layout. Most strides are those of a packed tensor, so `locate_packed` comes first here too. All of it is inlined, which takes the
//! compiler several times as long as the code of other declarations.
//!
//! Each fast path returns `None` for a case that it does not cover. `describe_general` has every rule and error. A test compares
//! the results.

use core::marker::PhantomData;

use crate::describe::check::size_to_i64;
use crate::describe::descriptor::{DescriptionSource, Descriptor};
use crate::describe::parts::{Annotation, Reading, StrideRule};
use crate::element::Axes;
use crate::layout::Dims;
use crate::layout::dims::{INLINE, InlineDims};
use crate::layout::extent;
use crate::layout::shape::HOLE;
use crate::layout::shape_strides::ShapeStrides;
use crate::{Error, Order, loan::LentMemory};

/// A description that was not made on a fast path.
///
/// Longer than the description, so the compiler keeps it in a variable of its own and copies the description from there. Otherwise
/// the called function would write into the variable that also gets the result of the fast path, and none of its fields could
/// stay in a register.
struct OutOfLine<'a> {
    described: Result<Descriptor<'a>, Error>,
    #[expect(dead_code, reason = "makes the struct longer")]
    excess: u64,
}

impl<'a> OutOfLine<'a> {
    /// Replaces the source [`FastPath`](DescriptionSource::FastPath), so that the compiler can tell the descriptions apart.
    #[inline(always)]
    fn into_described(mut self) -> Result<Descriptor<'a>, Error> {
        if let Ok(descriptor) = &mut self.described {
            if let DescriptionSource::FastPath = descriptor.source {
                descriptor.source = DescriptionSource::Memory;
            }
        }
        self.described
    }
}

impl Annotation {
    /// Describes a tensor over memory, which the caller knows to be valid for `'a`.
    #[inline(always)]
    pub(super) fn describe_over<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let Some((shape, strides)) = self.locate_packed(&memory) else {
            let describe = if self.has_only_shape(&memory) {
                Self::describe_shaped
            } else {
                Self::describe_unpacked
            };
            return self.describe_out_of_line(memory, describe).into_described();
        };
        let descriptor = self.packed_descriptor(&memory, shape, strides);
        // Neither value owns heap memory here. The compiler does not see this and would generate code that frees it.
        core::mem::forget(self);
        core::mem::forget(memory);
        Ok(descriptor)
    }

    /// The description of a tensor that [`locate_packed`](Self::locate_packed) has located.
    #[inline(always)]
    fn packed_descriptor<'a>(
        &self,
        memory: &LentMemory,
        shape: InlineDims,
        strides: [i64; INLINE],
    ) -> Descriptor<'a> {
        Descriptor {
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
            source: DescriptionSource::FastPath,
            allocation: memory.allocation,
            lifetime: PhantomData,
        }
    }

    /// Calls one of the functions that describe all that the inlined fast path does not cover.
    #[cold]
    #[inline(never)]
    fn describe_out_of_line<'a>(
        self,
        memory: LentMemory,
        describe: fn(Self, LentMemory) -> Result<Descriptor<'a>, Error>,
    ) -> OutOfLine<'a> {
        OutOfLine {
            described: describe(self, memory),
            excess: 0,
        }
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
            && memory.device.device_type.is_known()
            && memory.device.device_type.is_addressable()
            && memory.element * 8 == dtype.itemsize_bits() * memory.axes.count_items()
            && !memory.data.is_null()
            && memory.data.addr() % dtype.alignment() == 0;
        if !plain {
            return None;
        }
        let elements = memory.bytes.checked_div(memory.element)?;
        let mut shape = match &self.shape {
            Some(shape) => shape
                .inline_dims()
                .fill_hole(memory.bytes, memory.element)?,
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
        append_axes(memory.axes, &mut shape, &mut strides)?;
        Some((shape, strides))
    }

    /// Describes a tensor with an offset, a data type or strides of its own, as [`describe_over`](Self::describe_over) does, but
    /// inlined: the compiler knows which of these there are.
    #[inline(always)]
    pub(crate) fn describe_placed<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let descriptor = if let Some((shape, strides)) = self.locate_packed(&memory) {
            self.packed_descriptor(&memory, shape, strides)
        } else if let Some(found) = self.place_tensor(&memory) {
            self.placed_descriptor(&memory, &found)
        } else {
            // By value: references would force this function to keep both in memory, although it rarely calls that one.
            let describe = Self::describe_general;
            return self.describe_out_of_line(memory, describe).into_described();
        };
        // As in `describe_over`.
        core::mem::forget(self);
        core::mem::forget(memory);
        Ok(descriptor)
    }

    /// Describes as [`describe_placed`](Self::describe_placed) does, in one function for all declarations that the derive cannot tell
    /// apart from packed ones.
    #[inline(never)]
    fn describe_unpacked<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        self.describe_placed(memory)
    }

    #[inline(always)]
    fn placed_descriptor<'a>(&self, memory: &LentMemory, found: &PlacedTensor) -> Descriptor<'a> {
        let PlacedTensor { start, shape, .. } = found;
        let dims = ShapeStrides::from_inline(shape.values, found.strides, shape.len);
        let device = self.device.unwrap_or(memory.device);
        Descriptor {
            data: start.data,
            byte_offset: start.byte_offset,
            read_only: found.read_only,
            source: DescriptionSource::FastPath,
            ..self.new_descriptor(memory, &start.reading, device, dims)
        }
    }

    /// Locates a tensor with any layout and offset, if it has at most [`INLINE`] axes and its items are whole bytes. `None` for
    /// every error, and for tensors that only `describe_general` covers, such as empty ones.
    ///
    /// The loops over axes have a constant number of steps, and no list is indexed by a variable that the compiler does not know:
    /// shape and strides then stay in registers.
    #[inline(always)]
    fn place_tensor(&self, memory: &LentMemory) -> Option<PlacedTensor> {
        let start = self.place_start(memory)?;
        let is_packed = memory.layout.is_none()
            && matches!(self.strides, StrideRule::None | StrideRule::Order(_));
        if is_packed {
            self.place_packed(memory, start)
        } else {
            self.place_strided(memory, start)
        }
    }

    /// Locates the first element, and the bytes from there to the end of the memory.
    #[inline(always)]
    fn place_start(&self, memory: &LentMemory) -> Option<FirstElement> {
        let reading = self.reading.unwrap_or(Reading::of_memory(memory));
        let (dtype, element_bytes) = (reading.dtype, reading.element_bits / 8);
        let reinterpreted = self.reading.is_some() && dtype != memory.dtype;
        let device = self.device.unwrap_or(memory.device);
        let is_simple = (device == memory.device || memory.any_device)
            && device.device_type.is_known()
            && memory.stream.is_none()
            && (!reinterpreted || (dtype.is_known() && reading.any_bits))
            && element_bytes > 0
            && reading.element_bits == element_bytes * 8
            && reading.element_bits == dtype.itemsize_bits() * reading.axes.count_items()
            && !memory.data.is_null();
        if !is_simple {
            return None;
        }
        let mut distance = self.offset.checked_mul(size_to_i64(element_bytes))?;
        if let Some(layout) = &memory.layout {
            let first = i64::try_from(layout.first).ok()?;
            let first = first.checked_mul(size_to_i64(memory.element))?;
            distance = distance.checked_add(first)?;
        }
        let distance = usize::try_from(distance.checked_add(self.byte_offset)?).ok()?;
        let is_addressable = device.device_type.is_addressable();
        let start = FirstElement {
            data: memory
                .data
                .wrapping_add(if is_addressable { distance } else { 0 }),
            byte_offset: if is_addressable { 0 } else { distance as u64 },
            bytes_before: distance,
            bytes: memory.bytes.checked_sub(distance)?,
            reading,
            element_bytes,
            // A consumer could write bytes that are not a valid value of the lent type.
            read_only: self.read_only
                || memory.access.is_read_only()
                || (reinterpreted && !memory.any_bits),
        };
        let is_aligned = start.data.addr() & (dtype.alignment() - 1) == 0;
        (is_aligned || !is_addressable).then_some(start)
    }

    /// The shape, without the axes of the element type.
    #[inline(always)]
    fn leading_axes(&self, memory: &LentMemory, start: &FirstElement) -> Option<InlineDims> {
        if let Some(layout) = &memory.layout {
            let known = layout.shape.inline_dims();
            let given = self.shape.as_ref().map(Dims::inline_dims);
            let agrees = given.is_none_or(|given| known.agrees_with(given));
            return (start.element_bytes == memory.element && agrees).then_some(known);
        }
        let elements = start.bytes / start.element_bytes;
        let is_whole = start.bytes % start.element_bytes == 0;
        match &self.shape {
            Some(shape) => shape
                .inline_dims()
                .fill_hole(start.bytes, start.element_bytes),
            None => is_whole.then(|| InlineDims::single_axis(size_to_i64(elements))),
        }
    }

    /// Locates a tensor that is packed in C or F order from its first element on, as most tensors are.
    #[inline(always)]
    fn place_packed(&self, memory: &LentMemory, start: FirstElement) -> Option<PlacedTensor> {
        let mut shape = self.leading_axes(memory, &start)?;
        let order = match &self.strides {
            StrideRule::Order(order) => *order,
            _ => Order::C,
        };
        let elements = start.bytes / start.element_bytes;
        let unit = size_to_i64(start.reading.axes.count_items());
        let mut strides = shape.packed_strides(order, unit, elements)?;
        append_axes(start.reading.axes, &mut shape, &mut strides)?;
        Some(PlacedTensor {
            read_only: start.read_only,
            start,
            shape,
            strides,
        })
    }

    /// Locates a tensor with strides of its own.
    #[inline(always)]
    fn place_strided(&self, memory: &LentMemory, start: FirstElement) -> Option<PlacedTensor> {
        let mut shape = self.leading_axes(memory, &start)?;
        let leading = shape.len;
        let element_items = size_to_i64(start.reading.axes.count_items());
        // `None` for the items of a group, which share bytes: the bounds below are in bytes.
        let item_bytes = start.reading.dtype.itemsize()?;
        let of_elements = StrideUnit {
            items: element_items,
            shift: 0,
        };
        let of_bytes = StrideUnit {
            items: 1,
            shift: item_bytes.trailing_zeros(),
        };
        let known = memory.layout.as_ref().map(|it| it.strides.inline_dims());
        let (given, unit) = match (&self.strides, known) {
            (StrideRule::Bytes(_), _) if !item_bytes.is_power_of_two() => return None,
            (StrideRule::Bytes(given), _) => (given.inline_dims(), of_bytes),
            (StrideRule::Elements(given), _) => (given.inline_dims(), of_elements),
            (StrideRule::None, Some(known)) if !known.has_hole() => (known, of_elements),
            // An order for data that has its own strides.
            _ => return None,
        };
        let mut strides = [0; INLINE];
        if leading > INLINE || given.len != leading {
            return None;
        }
        // The stride that packs an axis against the one to its right.
        let mut packed = Some(element_items);
        for axis in (0..INLINE).rev() {
            if axis < leading {
                let stride = match given.values[axis] {
                    HOLE => packed?,
                    stride => unit.to_items(stride)?,
                };
                packed = stride.checked_mul(shape.values[axis]);
                strides[axis] = stride;
            }
        }
        if let Some(known) = known {
            // All of the list: values after the last axis are zero in both.
            let mut pairs = known.values.iter().zip(strides);
            if known.len != leading
                || !pairs.all(|(&known, stride)| of_elements.to_items(known) == Some(stride))
            {
                return None;
            }
        }
        append_axes(start.reading.axes, &mut shape, &mut strides)?;

        // The items that the axes reach, relative to the first, and whether each axis steps over all that the axes after it reach.
        let (mut lowest, mut highest, mut items, mut is_nested) = (0_i64, 0_i64, 1_i64, true);
        for axis in (0..INLINE).rev() {
            if axis < shape.len {
                let (extent, stride) = (shape.values[axis], strides[axis]);
                if extent <= 0 || stride == HOLE {
                    return None;
                }
                items = items.checked_mul(extent)?;
                let far = (extent - 1).checked_mul(stride)?;
                is_nested &= extent == 1 || stride > highest;
                if far < 0 {
                    is_nested = false;
                    lowest = lowest.checked_add(far)?;
                } else {
                    highest = highest.checked_add(far)?;
                }
            }
        }
        let item_bytes = size_to_i64(item_bytes);
        isize::try_from(items.checked_mul(item_bytes)?).ok()?;
        let lowest = lowest.checked_mul(item_bytes)?;
        let end = highest.checked_add(1)?.checked_mul(item_bytes)?;
        if lowest < -size_to_i64(start.bytes_before) || end > size_to_i64(start.bytes) {
            return None;
        }
        Some(PlacedTensor {
            // LAY-16: one write would show up in several elements.
            read_only: start.read_only || (!is_nested && may_overlap(shape, strides)),
            start,
            shape,
            strides,
        })
    }
}

/// The first element of a tensor and the memory that it lies in.
#[derive(Clone, Copy)]
struct FirstElement {
    /// The address or the handle of a descriptor.
    data: *mut u8,
    byte_offset: u64,
    /// The number of bytes between the start of the memory and the first element.
    bytes_before: usize,
    /// The number of bytes from the first element to the end of the memory.
    bytes: usize,
    reading: Reading,
    element_bytes: usize,
    read_only: bool,
}

/// Appends the axes of an element type to a shape. Returns `None` if there are more than [`INLINE`] then.
#[inline(always)]
fn append_axes(axes: &Axes, shape: &mut InlineDims, strides: &mut [i64; INLINE]) -> Option<()> {
    for (&extent, &stride) in axes.extents().iter().zip(axes.strides()) {
        *shape.values.get_mut(shape.len)? = extent;
        strides[shape.len] = stride;
        shape.len += 1;
    }
    Some(())
}

/// The result of [`Annotation::place_tensor`].
struct PlacedTensor {
    start: FirstElement,
    shape: InlineDims,
    strides: [i64; INLINE],
    read_only: bool,
}

/// Converts strides to items: one unit is `items` items, after an exact division by a power of two.
#[derive(Clone, Copy)]
struct StrideUnit {
    items: i64,
    /// The exponent of the power of two.
    shift: u32,
}

impl StrideUnit {
    /// `None` if the stride is not a whole number of items, or overflows.
    #[inline(always)]
    fn to_items(self, stride: i64) -> Option<i64> {
        let shifted = stride >> self.shift;
        if shifted << self.shift != stride {
            return None;
        }
        shifted.checked_mul(self.items)
    }
}

/// Whether two indices may address the same item. A function by value, since references would force the caller to keep both lists
/// in memory, although it rarely calls this one.
#[cold]
fn may_overlap(shape: InlineDims, strides: [i64; INLINE]) -> bool {
    let shape = shape.get().unwrap_or(&[]);
    extent::may_overlap(shape, &strides[..shape.len()])
}

#[cfg(test)]
mod tests;
