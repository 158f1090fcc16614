//! A naive model of what an annotation may describe, independent of the crate: it uses no `i64` arithmetic and no shortcuts.
//!
//! [`Case::verdict`] returns every reason to refuse a tensor, or the tensor if there is none. The crate must accept exactly the
//! cases without a reason, and name one of the reasons otherwise.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each user of this module uses only some of it; the fuzz targets are another crate"
)]

use dlpack_core::__private0::{HOLE, List};
use dlpack_core::layout::Dims;
use dlpack_core::{DataType, Error, Parts};

/// The type as which the bytes are read.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub apply: fn(Parts<'static>) -> Parts<'static>,
    pub item_bits: i128,
    pub alignment: usize,
    /// The axes of the element.
    pub trailing: &'static [i64],
}

macro_rules! kinds {
    ($($name:literal: $bits:literal, $alignment:literal, [$($extent:literal),*], $apply:expr;)*) => {
        pub const KINDS: &[Kind] = &[$(Kind {
            name: $name,
            apply: $apply,
            item_bits: $bits,
            alignment: $alignment,
            trailing: &[$($extent),*],
        }),*];
    };
}
kinds! {
    "u8, as lent": 8, 1, [], |parts| parts;
    "u8": 8, 1, [], |parts| parts.elem::<u8>();
    "u16": 16, 2, [], |parts| parts.elem::<u16>();
    "[u8; 3]": 8, 1, [3], |parts| parts.elem::<[u8; 3]>();
    "[[u16; 2]; 3]": 16, 2, [3, 2], |parts| parts.elem::<[[u16; 2]; 3]>();
    "f64": 64, 8, [], |parts| parts.elem::<f64>();
    "i128": 128, 16, [], |parts| parts.dtype(DataType::I128);
    "complex128": 128, 8, [], |parts| parts.dtype(DataType::C128);
    "float32x3": 96, 4, [], |parts| parts.dtype(DataType::F32.with_lanes(3));
    "float4": 4, 1, [], |parts| parts.dtype(DataType::F4_E2M1FN);
    "float4x3": 12, 1, [], |parts| parts.dtype(DataType::F4_E2M1FN.with_lanes(3));
    "float6": 6, 1, [], |parts| parts.dtype(DataType::F6_E2M3FN);
    "float6, padded": 8, 1, [], |parts| parts.dtype(DataType::F6_E2M3FN.padded());
    "[u8; 0]": 8, 1, [0], |parts| parts.elem::<[u8; 0]>();
}

#[derive(Clone, Debug)]
pub enum Strides {
    Packed,
    ColumnMajor,
    Elements(Vec<i64>),
    Bytes(Vec<i64>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    BadExtent,
    BadOffset,
    BadStride,
    Misaligned,
    NotInferable,
    Outside,
    PartialElement,
    PartialOffset,
    PartialStride,
    Rank,
    StrideCount,
    TooLarge,
}

impl Reason {
    pub fn of(error: &Error) -> Option<Self> {
        Some(match error {
            Error::BadExtent { .. } => Self::BadExtent,
            Error::BadOffset { .. } => Self::BadOffset,
            Error::BadStride { .. } => Self::BadStride,
            Error::Misaligned { .. } => Self::Misaligned,
            Error::NotInferable { .. } => Self::NotInferable,
            Error::OutOfBounds { .. } | Error::TooShort { .. } => Self::Outside,
            Error::PartialElement { .. } => Self::PartialElement,
            Error::PartialOffset { .. } => Self::PartialOffset,
            Error::PartialStride { .. } => Self::PartialStride,
            Error::TooManyAxes { .. } => Self::Rank,
            Error::StrideCount { .. } => Self::StrideCount,
            Error::TooLarge { .. } => Self::TooLarge,
            _ => return None,
        })
    }
}

/// An annotation over `len` bytes at `address`.
#[derive(Clone)]
pub struct Case {
    pub address: usize,
    pub len: usize,
    pub kind: Kind,
    /// `None`: the shape follows from the length of the memory.
    pub shape: Option<Vec<i64>>,
    pub strides: Strides,
    pub offset: i64,
    pub byte_offset: i64,
}

impl core::fmt::Debug for Case {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} over {} bytes at {:#x}: shape {:?}, {:?}, offset {}, byte offset {}",
            self.kind.name,
            self.len,
            self.address,
            self.shape,
            self.strides,
            self.offset,
            self.byte_offset
        )
    }
}

/// Shape, strides and start of a valid tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    pub shape: Vec<i128>,
    pub strides: Vec<i128>,
    /// The first element, in bytes from the start of the memory.
    pub first: usize,
}

impl Tensor {
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The position of every item, in items from the first one, row-major.
    pub fn places(&self) -> Vec<i128> {
        let mut places = vec![0];
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            places = (places.iter())
                .flat_map(|at| (0..extent).map(move |index| at + index * stride))
                .collect();
        }
        places
    }
}

impl Case {
    /// The annotation as the crate accepts it.
    pub fn parts(&self) -> Parts<'static> {
        let mut parts = Parts::new()
            .offset(self.offset)
            .byte_offset(self.byte_offset);
        // The derive makes such a list of one that may contain `_`.
        let list = |numbers: &[i64]| List(Ok(Dims::from(numbers)));
        if let Some(shape) = &self.shape {
            parts = parts.shape(list(shape));
        }
        parts = match &self.strides {
            Strides::Packed => parts,
            Strides::ColumnMajor => parts.column_major(),
            Strides::Elements(strides) => parts.strides(list(strides)),
            Strides::Bytes(strides) => parts.byte_strides(list(strides)),
        };
        (self.kind.apply)(parts)
    }

    /// The tensor, or every reason to refuse it.
    pub fn verdict(&self) -> Result<Tensor, Vec<Reason>> {
        let mut against = Vec::new();
        let memory_bits = wide(self.len) * 8;
        let items_per_element: i128 = self.kind.trailing.iter().map(|&e| i128::from(e)).product();
        let element_bits = items_per_element * self.kind.item_bits;

        let start = i128::from(self.offset) * element_bits + i128::from(self.byte_offset) * 8;
        if self.offset < 0 || self.byte_offset < 0 || start > memory_bits {
            against.push(Reason::BadOffset);
        }
        if start % 8 != 0 {
            against.push(Reason::PartialOffset);
        }
        let Some(mut shape) = self.extents(memory_bits - start, element_bits, &mut against) else {
            return Err(against);
        };
        if shape.iter().any(|&extent| extent < 0) {
            // No later rule makes sense.
            against.push(Reason::BadExtent);
            return Err(against);
        }
        let Some(mut strides) = self.item_strides(&shape, items_per_element, &mut against) else {
            return Err(against);
        };

        let trailing: Vec<i128> = self.kind.trailing.iter().map(|&e| i128::from(e)).collect();
        strides.extend(packed(&trailing, 1));
        shape.extend(trailing);
        if shape.len() > 64 {
            against.push(Reason::Rank);
        }
        if !shape.contains(&0) {
            self.judge_elements(&shape, &strides, start, &mut against);
        }
        if !against.is_empty() {
            return Err(against);
        }
        if shape.contains(&0) {
            strides = packed(&shape, 1);
        }
        Ok(Tensor {
            shape,
            strides,
            first: usize::try_from(start / 8).expect("inside the memory"),
        })
    }

    fn extents(
        &self,
        bits_left: i128,
        element_bits: i128,
        against: &mut Vec<Reason>,
    ) -> Option<Vec<i128>> {
        let given = match &self.shape {
            None => vec![HOLE],
            Some(given) => given.clone(),
        };
        if !given.contains(&HOLE) {
            return Some(given.into_iter().map(i128::from).collect());
        }
        if !against.is_empty() {
            return None;
        }
        if element_bits != 0 && bits_left % element_bits != 0 {
            against.push(Reason::PartialElement);
            return None;
        }
        // If elements have no size, there are none.
        let elements = bits_left.checked_div(element_bits).unwrap_or(0);
        let others = (given.iter().filter(|&&extent| extent != HOLE))
            .fold(1_i128, |product, &extent| {
                product.saturating_mul(extent.into())
            });
        if others < 0 {
            against.push(Reason::BadExtent);
        }
        if others == 0 && elements != 0 || others != 0 && elements % others != 0 {
            against.push(Reason::NotInferable);
            return None;
        }
        let inferred = elements.checked_div(others).unwrap_or(0);
        let value = |extent: i64| {
            if extent == HOLE {
                inferred
            } else {
                extent.into()
            }
        };
        Some(given.into_iter().map(value).collect())
    }

    /// The strides of the axes before those of the element, in items.
    fn item_strides(
        &self,
        shape: &[i128],
        items_per_element: i128,
        against: &mut Vec<Reason>,
    ) -> Option<Vec<i128>> {
        let (given, unit, bits_per_step) = match &self.strides {
            Strides::Packed => return Some(packed(shape, items_per_element)),
            Strides::ColumnMajor => {
                let backwards: Vec<i128> = shape.iter().rev().copied().collect();
                let mut strides = packed(&backwards, items_per_element);
                strides.reverse();
                return Some(strides);
            }
            Strides::Elements(given) => {
                let bits = items_per_element * self.kind.item_bits;
                (given, 1, bits)
            }
            Strides::Bytes(given) => {
                let bytes = items_per_element * self.kind.item_bits / 8;
                (given, bytes, 8)
            }
        };
        if given.len() != shape.len() {
            against.push(Reason::StrideCount);
            return None;
        }
        let mut strides = vec![0; given.len()];
        let mut next = unit;
        for axis in (0..given.len()).rev() {
            let step = if given[axis] == HOLE {
                next
            } else {
                given[axis].into()
            };
            if i64::try_from(step).is_err() {
                against.push(Reason::BadStride);
                return None;
            }
            next = step * shape[axis].max(1);
            let bits = step * bits_per_step;
            if bits % self.kind.item_bits != 0 {
                against.push(Reason::PartialStride);
            }
            let items = bits / self.kind.item_bits;
            // The lowest value is the mark of `_`.
            if items <= i128::from(i64::MIN) || items > i128::from(i64::MAX) {
                against.push(Reason::BadStride);
            }
            strides[axis] = items;
        }
        Some(strides)
    }

    /// Rules that apply only if there are elements.
    fn judge_elements(
        &self,
        shape: &[i128],
        strides: &[i128],
        start: i128,
        against: &mut Vec<Reason>,
    ) {
        let items = shape
            .iter()
            .fold(1_i128, |n, &extent| n.saturating_mul(extent));
        let bytes = items.saturating_mul(self.kind.item_bits).saturating_add(7) / 8;
        if items > i128::from(i64::MAX) || bytes > wide(isize::MAX.unsigned_abs()) {
            against.push(Reason::TooLarge);
        }
        let (mut lowest, mut highest) = (0_i128, 0_i128);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let last = stride.saturating_mul(extent - 1);
            lowest = lowest.saturating_add(last.min(0));
            highest = highest.saturating_add(last.max(0));
        }
        let bit = |item: i128| {
            item.saturating_mul(self.kind.item_bits)
                .saturating_add(start)
        };
        if bit(lowest) < 0 || bit(highest.saturating_add(1)) > wide(self.len) * 8 {
            against.push(Reason::Outside);
        }
        let first = wide(self.address) + start.div_euclid(8);
        if first % wide(self.kind.alignment) != 0 {
            against.push(Reason::Misaligned);
        }
    }
}

/// Contiguous strides, from the last axis on, as if empty axes had size 1; saturated at the limits of an `i64`.
fn packed(shape: &[i128], unit: i128) -> Vec<i128> {
    let mut strides = vec![0; shape.len()];
    let mut next = unit;
    for axis in (0..shape.len()).rev() {
        strides[axis] = next.min(i64::MAX.into());
        next = next.saturating_mul(shape[axis].max(1));
    }
    strides
}

fn wide(size: usize) -> i128 {
    i128::try_from(size).expect("smaller than 2^127")
}
