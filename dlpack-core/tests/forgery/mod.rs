//! Tensors of a producer that makes mistakes in one field after another, and what an importer must do with each of them.
//!
//! A case is a valid tensor that was changed at random. [`Forgery::verdict`] decides by dlpack.h and by plain arithmetic whether
//! it must be refused. [`Forgery::is_honest`] decides whether its items lie in memory that exists, so that they may be read.
//! [`look`] compares all functions that read it with the bytes at the positions of its items.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each user of this module uses only some of it; the fuzz targets are another crate"
)]

use core::fmt::Debug;
use core::ptr::NonNull;

use dlpack_core::abi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpack_core::element::Plain;
use dlpack_core::{DataType, Error, Managed};

use super::dice::Dice;
use super::made::{self, Foreign, dtype};

/// The size of the memory of the tensors. It must be aligned to 16 bytes.
pub const BYTES: usize = 2048;
/// The offset of a tensor without a fault, so that strides may also lead backwards.
const START: usize = 512;

/// Bytes of which the first half are valid `bool`s.
pub fn memory() -> Vec<u128> {
    let byte = |at: usize| match at {
        0..1024 => u8::from(at % 3 == 0),
        _ => u8::try_from(at * 37 % 251).expect("less than 251"),
    };
    let word = |at: usize| u128::from_ne_bytes(core::array::from_fn(|part| byte(at * 16 + part)));
    (0..BYTES / 16).map(word).collect()
}

const TYPES: [(u8, u8, u16); 12] = [
    (1, 8, 1),
    (0, 32, 1),
    (0, 32, 1),
    (2, 64, 1),
    (2, 32, 1),
    (2, 32, 1),
    (6, 8, 1),
    (0, 16, 1),
    (17, 4, 1),
    (5, 128, 1),
    (0, 128, 1),
    (1, 8, 3),
];
/// Numbers near which arithmetic overflows.
const EDGES: [i64; 14] = [
    0,
    1,
    -1,
    -2,
    7,
    64,
    1 << 31,
    1 << 32,
    1 << 47,
    1 << 61,
    1 << 62,
    i64::MAX,
    i64::MIN,
    -i64::MAX,
];

/// What an importer must do with a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Refused(&'static str),
    Taken,
    /// dlpack.h does not specify it, and nothing depends on it.
    Either,
}

#[derive(Clone, Debug)]
pub struct Forgery {
    pub foreign: Foreign,
    pub legacy: bool,
}

/// The struct that an importer takes over.
#[derive(Clone, Copy)]
pub enum Struct {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

impl Struct {
    /// # Safety
    ///
    /// The contract of [`Managed::from_raw`].
    pub unsafe fn import(self) -> Result<Managed, Error> {
        match self {
            // SAFETY: same contract as this function's.
            Self::Versioned(tensor) => unsafe { Managed::from_raw(tensor) },
            // SAFETY: same contract as this function's.
            Self::Legacy(tensor) => unsafe { Managed::from_legacy(tensor) },
        }
    }

    /// Frees a tensor without a deleter.
    ///
    /// # Safety
    ///
    /// [`Forgery::make`] made the struct without a deleter, and it is not used afterwards.
    pub unsafe fn free(self) {
        match self {
            // SAFETY: same contract as this function's.
            Self::Versioned(tensor) => unsafe { made::free_versioned(tensor) },
            // SAFETY: same contract as this function's.
            Self::Legacy(tensor) => unsafe { made::free_legacy(tensor) },
        }
    }
}

impl Forgery {
    /// A valid tensor over `memory`, which has [`BYTES`] bytes, with up to five faults.
    pub fn draw(dice: &mut Dice, memory: *mut u8) -> Self {
        let (code, bits, lanes) = dice.one_of(&TYPES);
        let shape: Vec<i64> = (0..dice.below(5)).map(|_| dice.between(0, 4)).collect();
        let data = memory.wrapping_add(START);
        let mut forgery = Self {
            foreign: Foreign::new(data, dtype(code, bits, lanes), &shape),
            legacy: dice.below(4) == 0,
        };
        for _ in 0..dice.one_of(&[0, 1, 1, 1, 1, 2, 2, 3, 5]) {
            forgery.change(dice);
        }
        forgery
    }

    fn change(&mut self, dice: &mut Dice) {
        let foreign = &mut self.foreign;
        let number = |dice: &mut Dice| {
            if dice.below(2) == 0 {
                dice.between(-9, 9)
            } else {
                let edge = dice.one_of(&EDGES).wrapping_add(dice.between(-1, 1));
                if dice.below(3) == 0 {
                    edge.wrapping_neg()
                } else {
                    edge
                }
            }
        };
        let [byte, other] = [0, 8].map(|shift| (dice.draw() >> shift).to_le_bytes()[0]);
        match dice.below(18) {
            // The lists are as long as the rank says, unless the rank is refused.
            0 => foreign.ndim = Some(dice.one_of(&[-1, -2, 65, 66, 1000, i32::MIN, i32::MAX])),
            1 => foreign.shape = None,
            2 => foreign.strides = None,
            3 => foreign.skew[0] = 1 + dice.below(7),
            4 => foreign.skew[1] = 1 + dice.below(7),
            5 | 6 => set_one(&mut foreign.shape, dice, number),
            7..=9 => set_one(&mut foreign.strides, dice, number),
            10 => foreign.dtype = dtype(byte % 24, other, foreign.dtype.lanes),
            11 => foreign.dtype.lanes = dice.one_of(&[0, 1, 2, 7, 256, u16::MAX]),
            12 => {
                foreign.device.device_type = i32::from(byte % 24) - 2;
                foreign.device.device_id = dice.one_of(&[0, 1, -1, i32::MAX]);
            }
            13 => foreign.version = (u32::from(dice.one_of(&[0_u8, 1, 1, 2, 255])), byte.into()),
            14 => foreign.flags = dice.one_of(&[1, 2, 3, 4, 5, 7, 8, 1 << 63, u64::MAX]),
            15 => foreign.byte_offset = u64::from_ne_bytes(number(dice).to_ne_bytes()),
            16 => {
                let data = foreign.data;
                let nowhere = core::ptr::without_provenance_mut;
                let moved = data.wrapping_add(dice.below(16));
                let null = core::ptr::null_mut();
                let top = nowhere(usize::MAX - dice.below(64));
                foreign.data = dice.one_of(&[null, moved, moved, nowhere(16), top]);
            }
            _ if dice.below(2) == 0 => foreign.has_deleter = false,
            _ => {
                // Many axes of size 1, up to one more than is allowed.
                let rank = dice.one_of(&[31, 32, 33, 63, 64, 65]);
                foreign.shape = Some(vec![1; rank]);
                foreign.strides = Some((0..rank).map(|_| number(dice)).collect());
                foreign.ndim = foreign.ndim.filter(|rank| !(0..=64).contains(rank));
            }
        }
        // An importer reads both lists, so both must be as long as the rank says.
        let len = |list: &Option<Vec<i64>>| list.as_ref().map(Vec::len);
        if let (None, Some(axes), None) = (len(&foreign.shape), len(&foreign.strides), foreign.ndim)
        {
            foreign.ndim = i32::try_from(axes).ok();
        }
    }

    pub fn make(&self) -> Struct {
        if self.legacy {
            Struct::Legacy(self.foreign.legacy())
        } else {
            Struct::Versioned(self.foreign.versioned())
        }
    }

    fn rank(&self) -> i32 {
        let axes = self.foreign.shape.as_ref().map_or(0, Vec::len);
        let axes = i32::try_from(axes).expect("a small rank");
        self.foreign.ndim.unwrap_or(axes)
    }

    fn item_bits(&self) -> i128 {
        let dtype = self.foreign.dtype;
        let is_small = matches!(dtype.bits, 4 | 6);
        let is_padded = is_small && !self.legacy && self.foreign.flags & 4 != 0;
        i128::from(if is_padded { 8 } else { dtype.bits }) * i128::from(dtype.lanes)
    }

    /// Decides what an importer must do with it.
    pub fn verdict(&self) -> Verdict {
        use Verdict::{Either, Refused, Taken};
        let foreign = &self.foreign;
        if !self.legacy && foreign.version.0 != 1 {
            return Refused("another major version");
        }
        let rank = self.rank();
        if !(0..=64).contains(&rank) {
            return Refused("the rank");
        }
        if rank > 0 && foreign.shape.is_none() {
            return Refused("no shape");
        }
        let skewed = |list: &Option<Vec<i64>>, skew| list.is_some() && skew != 0;
        if skewed(&foreign.shape, foreign.skew[0]) || skewed(&foreign.strides, foreign.skew[1]) {
            return if rank > 0 {
                Refused("a list that is not aligned")
            } else {
                Either
            };
        }
        // No device type has the numbers 5 and 6.
        if !matches!(foreign.device.device_type, 1..=4 | 7..=18) {
            return Refused("the device");
        }
        let shape = foreign.shape.as_deref().unwrap_or_default();
        if shape.iter().any(|&extent| extent < 0) {
            return Refused("a negative extent");
        }
        if !is_type(foreign.dtype.code, foreign.dtype.bits) || foreign.dtype.lanes == 0 {
            return Refused("the data type");
        }
        if shape.contains(&0) {
            return Taken;
        }
        let most = i128::from(i64::MAX);
        if self.len() > most || self.all_bits() > 8 * most {
            return Refused("the size");
        }
        let is_handle = matches!(foreign.device.device_type, 4 | 7 | 8 | 15);
        if foreign.data.is_null() && !is_handle {
            return Refused("no data");
        }
        // No memory has that many items, however small they are.
        if self.span().iter().any(|&item| i64::try_from(item).is_err()) {
            return Refused("a reach of more than memory has");
        }
        let [first, end] = self.reach();
        let (offset, data) = (i128::from(foreign.byte_offset), foreign.data.addr());
        // A handle is no address: it stands for the start of its memory, whatever its value.
        let data = if is_handle { 0 } else { data };
        let data = i128::try_from(data).expect("smaller than 2^127");
        if end - first > most || offset > most {
            return Refused("a reach of more than memory has");
        }
        if data + offset + first < 0 || data + offset + end > i128::from(u64::MAX) {
            return Refused("a reach out of memory");
        }
        Taken
    }

    /// Strides of 0 allow a tensor of any length.
    pub fn is_long(&self) -> bool {
        self.len() > 4096
    }

    fn len(&self) -> i128 {
        let shape = self.foreign.shape.as_deref().unwrap_or_default();
        (shape.iter()).fold(1, |n: i128, &extent| n.saturating_mul(extent.into()))
    }

    /// The number of bits of all items together.
    pub fn all_bits(&self) -> i128 {
        self.len().saturating_mul(self.item_bits())
    }

    /// The positions of the lowest and the highest item, counted in items from the one with all indices 0.
    fn span(&self) -> [i128; 2] {
        let shape = self.foreign.shape.as_deref().unwrap_or_default();
        let (mut low, mut high) = (0_i128, 0_i128);
        for (&extent, stride) in shape.iter().zip(self.strides()) {
            let far = i128::from(stride) * (i128::from(extent) - 1);
            low = low.saturating_add(far.min(0));
            high = high.saturating_add(far.max(0));
        }
        [low, high]
    }

    /// The first byte that the items reach, and the one after the last.
    fn reach(&self) -> [i128; 2] {
        let ([low, high], bits) = (self.span(), self.item_bits());
        let end = high.saturating_add(1).saturating_mul(bits);
        let first = low.saturating_mul(bits);
        [first.div_euclid(8), end.saturating_add(7).div_euclid(8)]
    }

    /// The strides, or the row-major ones if there are none.
    pub fn strides(&self) -> Vec<i64> {
        if let Some(strides) = &self.foreign.strides {
            return strides.clone();
        }
        let shape = self.foreign.shape.as_deref().unwrap_or_default();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = shape[axis].max(1).saturating_mul(strides[axis]);
        }
        strides
    }

    /// Whether every item of an accepted tensor lies in the memory that exists, and the CPU can read it.
    pub fn is_honest(&self, memory: &[u8]) -> bool {
        let foreign = &self.foreign;
        let is_empty = (foreign.shape.as_deref().unwrap_or_default()).contains(&0);
        let [first, end] = self.reach();
        let wide = |address: usize| i128::try_from(address).expect("smaller than 2^127");
        let start = wide(foreign.data.addr()) + i128::from(foreign.byte_offset);
        let begin = wide(memory.as_ptr().addr());
        let inside = start + first >= begin && start + end <= begin + wide(memory.len());
        (is_empty || inside) && matches!(foreign.device.device_type, 1 | 3 | 11 | 13)
    }
}

/// Replaces a random entry of the list by a number.
fn set_one(list: &mut Option<Vec<i64>>, dice: &mut Dice, number: impl Fn(&mut Dice) -> i64) {
    let Some(list) = list.as_mut().filter(|list| !list.is_empty()) else {
        return;
    };
    let at = dice.below(list.len());
    list[at] = number(dice);
}

/// Whether dlpack.h 1.3 defines a type with this code and size.
fn is_type(code: u8, bits: u8) -> bool {
    match code {
        0 | 1 => [8, 16, 32, 64, 128].contains(&bits),
        2 => [16, 32, 64].contains(&bits),
        3 => bits == 64,
        4 => bits == 16,
        5 => [32, 64, 128].contains(&bits),
        6..=14 => bits == 8,
        15 | 16 => bits == 6,
        17 => bits == 4,
        _ => false,
    }
}

/// Compares all functions that read a tensor with the bytes at the positions of its items, for every type that it might have.
pub fn look(managed: &Managed, memory: &[u8]) {
    read::<u8>(managed, memory);
    read::<i32>(managed, memory);
    read::<f32>(managed, memory);
    read::<f64>(managed, memory);
    read::<bool>(managed, memory);
    read::<i16>(managed, memory);
    read::<i128>(managed, memory);
}

fn read<T: Plain + PartialEq + Debug + Copy>(managed: &Managed, memory: &[u8]) {
    let view = managed.view();
    let size = size_of::<T>();
    if view.dtype() != T::DTYPE || !view.device().device_type.is_host_readable() {
        // Refused before any item is read.
        assert!(
            view.to_vec::<T>().is_err()
                && view.iter::<T>().is_err()
                && view.as_slice::<T>().is_err()
        );
        return;
    }
    let start = view.as_ptr().addr().wrapping_sub(memory.as_ptr().addr());
    let Some(expected) = items(view.shape(), view.strides(), start, size, memory) else {
        return; // The tensor claims items outside of its memory.
    };
    if T::DTYPE == DataType::BOOL && expected.iter().any(|&byte| byte > 1) {
        assert!(
            view.to_vec::<T>().is_err()
                && view.iter::<T>().is_err()
                && view.as_slice::<T>().is_err()
        );
        return;
    }
    assert_eq!(bytes(&view.to_vec::<T>().expect("readable")), expected);
    let items: Vec<T> = view.iter::<T>().expect("readable").collect();
    assert_eq!(bytes(&items), expected);
    if let Ok(slice) = view.as_slice::<T>() {
        assert_eq!(bytes(slice), expected);
    }
}

pub fn bytes<T: Plain>(items: &[T]) -> Vec<u8> {
    // SAFETY: a `Plain` type is initialised memory without padding.
    unsafe { core::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }.to_vec()
}

/// The bytes of all items, found by an index walk from `start`; `None` if one lies outside.
pub fn items(
    shape: &[i64],
    strides: &[i64],
    start: usize,
    size: usize,
    memory: &[u8],
) -> Option<Vec<u8>> {
    if shape.contains(&0) {
        return Some(Vec::new());
    }
    let mut places = vec![0_i128];
    for (&extent, &stride) in shape.iter().zip(strides) {
        if places.len().checked_mul(usize::try_from(extent).ok()?)? > 4096 {
            return None;
        }
        let steps = || (0..i128::from(extent)).map(|index| index * i128::from(stride));
        places = (places.iter())
            .flat_map(|at| steps().map(move |step| at.saturating_add(step)))
            .collect();
    }
    let mut bytes = Vec::with_capacity(places.len() * size);
    for place in places {
        let at = i128::try_from(start).ok()? + place.checked_mul(i128::try_from(size).ok()?)?;
        let at = usize::try_from(at).ok()?;
        bytes.extend_from_slice(memory.get(at..)?.get(..size)?);
    }
    Some(bytes)
}
