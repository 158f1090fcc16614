//! Checks shape, strides, offset and alignment of an annotation against the lent memory, and decides whether the tensor is
//! read-only. The result is a [`Descriptor`].
//!
//! `fast` repeats these rules for its tensors. For tensors that were exported or imported before, `descriptor` decides which are
//! read-only.

use core::marker::PhantomData;

use crate::describe::parts::StrideRule;
use crate::describe::{descriptor::DescriptionSource, parts::Annotation, parts::Reading};
use crate::layout::extent::{self, packed_bytes};
use crate::layout::shape_strides::ShapeStrides;
use crate::layout::{Dims, shape, shape::HOLE};
use crate::tensor::{foreign::reject_malformed, view::check_alignment};
use crate::{Descriptor, Device, Error, Order, error::copy_list, loan::LentMemory, stream::Queue};

/// The stream that writes the memory, according to the annotation and the data.
fn written_on(given: Option<Queue>, data: Option<Queue>) -> Result<Option<Queue>, Error> {
    let Some(data) = data else {
        return Ok(given);
    };
    #[cfg(feature = "cudarc")]
    if let Some(code) = data.failure_code() {
        return Err(crate::stream::driver::cuda_error("cudarc", code));
    }
    match given {
        Some(given) if !data.goes_by(given) => Err(Error::StreamConflict {
            data: data.handle,
            given: given.handle,
        }),
        _ => Ok(Some(data)),
    }
}

impl Annotation {
    /// Describes any tensor, or returns the error. [`Annotation::describe_over`] is faster for valid tensors.
    #[cold]
    pub(super) fn describe_general<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        self.describe_any(memory)
    }

    /// Describes a tensor for which [`has_only_shape`](Self::has_only_shape), or returns the error, by the rules of
    /// [`describe_general`](Self::describe_general).
    ///
    /// The function replaces the other properties by constants, and the compiler removes the rules for them. A module whose
    /// tensors have only shapes does not link those rules.
    #[cold]
    #[inline(never)]
    pub(super) fn describe_shaped<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let annotation = Self {
            strides: StrideRule::None,
            offset: 0,
            byte_offset: 0,
            reading: None,
            device: None,
            stream: None,
            ..self
        };
        annotation.describe_any(LentMemory {
            device: Device::CPU,
            layout: None,
            stream: None,
            ..memory
        })
    }

    /// Whether the tensor lies in host memory in row-major order, from the start of the memory, and is read as the type of the
    /// memory: no annotation gives more than a shape, and the data has no layout of its own.
    ///
    /// Inlined into each description, where the compiler knows the answer.
    #[inline(always)]
    pub(super) fn has_only_shape(&self, memory: &LentMemory) -> bool {
        matches!(self.strides, StrideRule::None)
            && self.offset == 0
            && self.byte_offset == 0
            && self.reading.is_none()
            && self.device.is_none()
            && self.stream.is_none()
            && memory.device == Device::CPU
            && memory.layout.is_none()
            && memory.stream.is_none()
    }

    /// The rules of [`describe_general`](Self::describe_general), inlined where some properties are constants.
    #[inline(always)]
    fn describe_any<'a>(self, memory: LentMemory) -> Result<Descriptor<'a>, Error> {
        let reading = self.reading.unwrap_or(Reading::of_memory(&memory));
        if self.reading.is_some() && !reading.dtype.is_known() {
            return Err(Error::UnknownDataType {
                found: reading.dtype,
            });
        }
        let (data, device) = (memory.device, self.device.unwrap_or(memory.device));
        if device != data && !memory.any_device {
            let given = device;
            return Err(Error::DeviceConflict { data, given });
        }
        if !device.device_type.is_known() {
            // DEV-14, DEV-19
            return Err(Error::UnknownDevice { found: device });
        }
        let stream = written_on(self.stream, memory.stream)?;
        let item_bits = reading.dtype.itemsize_bits();
        let pitch = size_to_i64(reading.element_bits / item_bits);
        let start = self.start_bits(&memory, reading.element_bits)?;

        let mut shape = self.leading_shape(&memory, &reading, start)?;
        if let Some(axis) = shape.iter().position(|&extent| extent < 0) {
            let found = shape[axis].into();
            return Err(Error::BadExtent { axis, found });
        }
        let mut strides = self.leading_strides(&memory, &reading, &shape, pitch)?;
        shape.append(reading.axes.extents())?;
        strides.append(reading.axes.strides())?;
        shape.check_rank()?;

        let dims = ShapeStrides::new(&shape, &strides)?;
        let mut descriptor = self.new_descriptor(&memory, &reading, device, dims);
        descriptor.stream = stream;
        if shape.contains(&0) {
            // LAY-05, LAY-18: no address, and strides as if the empty extents were 1.
            descriptor.dims = ShapeStrides::row_major(&shape)?;
            return Ok(descriptor);
        }
        self.place_in_memory(&mut descriptor, &memory, &reading, start)?;
        if self.reading.is_some() && reading.dtype != memory.dtype {
            check_reinterpreted(&mut descriptor, &memory, &reading)?;
        }
        Ok(descriptor)
    }

    /// Creates a descriptor with this shape and these strides, but without an address yet.
    #[inline]
    pub(super) fn new_descriptor<'a>(
        &self,
        memory: &LentMemory,
        reading: &Reading,
        device: Device,
        dims: ShapeStrides,
    ) -> Descriptor<'a> {
        Descriptor {
            data: core::ptr::null_mut(),
            byte_offset: 0,
            dims,
            dtype: reading.dtype,
            device,
            stream: self.stream,
            read_only: self.read_only || memory.access.is_read_only(),
            access: memory.access,
            legacy: self.legacy,
            release: self.release,
            source: DescriptionSource::Memory,
            allocation: memory.allocation,
            lifetime: PhantomData,
        }
    }

    /// The start of the first element, in bits from the start of the memory.
    #[inline]
    fn start_bits(&self, memory: &LentMemory, element_bits: usize) -> Result<usize, Error> {
        let first = memory.layout.as_ref().map_or(0, |layout| layout.first);
        if first == 0 && self.offset == 0 && self.byte_offset == 0 {
            return Ok(0);
        }
        let wide = |number: usize| i128::try_from(number).unwrap_or(i128::MAX);
        let bits = wide(first) * wide(memory.element * 8)
            + i128::from(self.offset) * wide(element_bits)
            + i128::from(self.byte_offset) * 8;
        if bits % 8 != 0 {
            return Err(Error::PartialOffset { bits });
        }
        if bits > wide(memory.bytes) * 8 {
            return Err(Error::BadOffset { found: bits / 8 });
        }
        usize::try_from(bits).map_err(|_| Error::BadOffset { found: bits / 8 })
    }

    /// The shape before the axes of the element: given, known from the data, or one axis of all elements.
    #[inline]
    fn leading_shape(
        &self,
        memory: &LentMemory,
        reading: &Reading,
        start: usize,
    ) -> Result<Dims, Error> {
        if let Some(layout) = &memory.layout {
            if reading.element_bits != memory.element * 8 {
                return Err(Error::PartialElement {
                    bytes: memory.element,
                    element_bits: reading.element_bits,
                });
            }
            let known = layout.shape.clone().check_allocated()?;
            if let Some(given) = &self.shape {
                let mut axes = given.iter().zip(known.iter());
                let agree = axes.all(|(given, known)| *given == HOLE || given == known);
                if given.len() != known.len() || !agree {
                    return Err(layout_conflict("shape", &known, given));
                }
            }
            return Ok(known);
        }
        let elements = || whole_elements(memory, reading, start);
        match &self.shape {
            Some(given) if !given.contains(&HOLE) => given.clone().check_allocated(),
            Some(given) => fill_hole(given, elements()?),
            None => Ok(Dims::from([size_to_i64(elements()?)])),
        }
    }

    /// The strides, in items, of the axes before those of the element.
    #[inline]
    fn leading_strides(
        &self,
        memory: &LentMemory,
        reading: &Reading,
        shape: &Dims,
        pitch: i64,
    ) -> Result<Dims, Error> {
        let item_bits = size_to_i64(reading.dtype.itemsize_bits());
        let given = match &self.strides {
            StrideRule::None => None,
            StrideRule::Order(order) => Some(extent::packed_strides(*order, shape, pitch)?),
            StrideRule::Elements(given) => {
                Some(strides_in_items(fill_strides(given, shape, 1)?, pitch)?)
            }
            StrideRule::Bytes(given) => {
                let mut strides =
                    fill_strides(given, shape, size_to_i64(reading.element_bits / 8))?;
                for (axis, stride) in strides.iter_mut().enumerate() {
                    let bits = i128::from(*stride) * 8;
                    if bits % i128::from(item_bits) != 0 {
                        return Err(Error::PartialStride {
                            axis,
                            found: *stride,
                            itemsize: reading.dtype.itemsize_bits().div_ceil(8),
                        });
                    }
                    *stride = shape::check_stride(axis, bits / i128::from(item_bits))?;
                }
                Some(strides)
            }
        };
        let Some(layout) = &memory.layout else {
            return given.map_or_else(|| extent::packed_strides(Order::C, shape, pitch), Ok);
        };
        let known = strides_in_items(layout.strides.clone().check_allocated()?, pitch)?;
        check_stride_count(&known, shape)?;
        match given {
            Some(given) if given != known => {
                let what = match self.strides {
                    StrideRule::Order(_) => "order",
                    _ => "strides",
                };
                Err(layout_conflict(what, &known, &given))
            }
            _ => Ok(known),
        }
    }

    /// Sets the address of the tensor after a check that every element lies inside the memory.
    #[inline]
    fn place_in_memory(
        &self,
        descriptor: &mut Descriptor<'_>,
        memory: &LentMemory,
        reading: &Reading,
        start: usize,
    ) -> Result<(), Error> {
        let (shape, strides) = (descriptor.shape(), descriptor.strides());
        packed_bytes(shape, reading.dtype).ok_or_else(|| Error::too_large(shape))?;
        let item_bits = i128::try_from(reading.dtype.itemsize_bits()).unwrap_or(i128::MAX);
        let start_bits = i128::try_from(start).unwrap_or(i128::MAX);
        let len_bits = i128::try_from(memory.bytes).unwrap_or(i128::MAX) * 8;
        let inside = extent::reached_items(shape, strides).filter(|reach| {
            start_bits + i128::from(reach.min) * item_bits >= 0
                && start_bits + (i128::from(reach.max) + 1) * item_bits <= len_bits
        });
        if inside.is_none() {
            let (min, max) = extent::reach_saturating(shape, strides);
            let items = shape.iter().map(|&extent| i128::from(extent));
            if start == 0 && min == 0 && max.saturating_add(1) == items.product::<i128>() {
                // Only the shape is wrong.
                let leading = shape.len() - reading.axes.len();
                let found = usize::try_from(len_bits).unwrap_or(usize::MAX) / reading.element_bits;
                return Err(Error::too_short(&shape[..leading], found));
            }
            let bits = |item: i128| start_bits.saturating_add(item.saturating_mul(item_bits));
            return Err(Error::OutOfBounds {
                first: bits(min).div_euclid(8),
                end: bits(max.saturating_add(1)).saturating_add(7).div_euclid(8),
                len: memory.bytes,
            });
        }
        if memory.data.is_null() {
            return reject_malformed("the data has elements and a null address", 0);
        }

        let start_bytes = start / 8;
        if descriptor.device.device_type.is_addressable() {
            descriptor.data = memory.data.wrapping_add(start_bytes);
            let dtype = reading.dtype;
            check_alignment(descriptor.data.addr(), dtype.alignment(), dtype)?;
        } else {
            descriptor.data = memory.data;
            descriptor.byte_offset = u64::try_from(start_bytes).unwrap_or(u64::MAX);
        }

        // LAY-16: one write would show up in several elements.
        descriptor.read_only =
            descriptor.read_only || extent::may_overlap(descriptor.shape(), descriptor.strides());
        Ok(())
    }
}

/// Checks the values of data that is read as another data type than it was lent with, and forbids writing where that could
/// store invalid values.
fn check_reinterpreted(
    descriptor: &mut Descriptor<'_>,
    memory: &LentMemory,
    reading: &Reading,
) -> Result<(), Error> {
    // A consumer could write bytes that are not a valid value of the lent type.
    descriptor.read_only |= !memory.any_bits;
    if !reading.any_bits {
        let view = descriptor.view();
        view.check_host_readable()?;
        // Every byte of data that is read as `bool` must be 0 or 1.
        view.check_bools()?;
    }
    Ok(())
}

fn layout_conflict(what: &'static str, data: &Dims, given: &Dims) -> Error {
    let lists = || {
        let (data, mut given) = (copy_list(data)?, copy_list(given)?);
        for hole in given.iter_mut().filter(|extent| **extent == HOLE) {
            *hole = -1;
        }
        Ok(Error::LayoutConflict { what, data, given })
    };
    lists().unwrap_or_else(|error| error)
}

/// Converts strides in elements to strides in items; each element has `pitch` items.
#[inline(always)]
fn strides_in_items(mut strides: Dims, pitch: i64) -> Result<Dims, Error> {
    for (axis, stride) in strides.iter_mut().enumerate() {
        *stride = shape::check_stride(axis, i128::from(*stride) * i128::from(pitch))?;
    }
    Ok(strides)
}

/// Checks that there is one stride for each axis.
#[inline(always)]
fn check_stride_count(strides: &Dims, shape: &Dims) -> Result<(), Error> {
    let (found, needed) = (strides.len(), shape.len());
    if found == needed {
        return Ok(());
    }
    Err(Error::StrideCount { found, needed })
}

/// Converts a size of memory or of a type, which never exceeds `isize::MAX`.
#[inline]
pub(super) fn size_to_i64(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The number of elements from `start` to the end of the memory, which must be whole.
fn whole_elements(memory: &LentMemory, reading: &Reading, start: usize) -> Result<usize, Error> {
    let bytes = memory.bytes - start / 8;
    let whole = if reading.element_bits % 8 == 0 {
        let element = reading.element_bits / 8;
        // Elements without size take no bytes. Their number is unknown, so it is taken as 0.
        bytes
            .checked_rem(element)
            .map_or(Some(0), |rest| (rest == 0).then(|| bytes / element))
    } else {
        let bits = bytes.checked_mul(8);
        bits.filter(|bits| bits % reading.element_bits == 0)
            .map(|bits| bits / reading.element_bits)
    };
    whole.ok_or(Error::PartialElement {
        bytes,
        element_bits: reading.element_bits,
    })
}

/// Replaces the extent written `_`, which follows from the number of elements.
fn fill_hole(given: &Dims, elements: usize) -> Result<Dims, Error> {
    let mut others = 1_i128;
    for &extent in given.iter().filter(|&&extent| extent != HOLE) {
        others = others.saturating_mul(i128::from(extent));
    }
    let wide = i128::try_from(elements).unwrap_or(i128::MAX);
    let inferred = match wide.checked_rem(others) {
        None if elements == 0 => 0,
        Some(0) => wide / others,
        _ => return Err(Error::NotInferable { elements, others }),
    };
    let mut shape = given.clone().check_allocated()?;
    for (axis, extent) in shape.iter_mut().enumerate() {
        if *extent == HOLE {
            *extent = shape::check_extent(axis, inferred)?;
        }
    }
    Ok(shape)
}

/// Replaces each stride written `_` by the packed stride for the axis to its right; the last axis gets `unit`.
pub(crate) fn fill_strides(given: &Dims, shape: &Dims, unit: i64) -> Result<Dims, Error> {
    let mut strides = given.clone().check_allocated()?;
    check_stride_count(&strides, shape)?;
    let mut packed = i128::from(unit);
    for axis in (0..strides.len()).rev() {
        if strides[axis] == HOLE {
            strides[axis] = shape::check_stride(axis, packed)?;
        }
        packed = i128::from(strides[axis]) * i128::from(shape[axis].max(1));
    }
    Ok(strides)
}
