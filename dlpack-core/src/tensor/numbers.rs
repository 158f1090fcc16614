//! Converts the items of a tensor to numbers, whatever their type, for a language that has one float type.
#![expect(unsafe_code, reason = "copies the items of a checked tensor")]

use alloc::vec::Vec;

use crate::layout::extent;
use crate::memory::atomic::load_bytes;
use crate::{DataType, Error, TensorRef, abi};

/// A scalar of a tensor, converted without loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AnyNumber {
    /// A `bool`.
    Bool(bool),
    /// A signed integer.
    Signed(i128),
    /// An unsigned integer, or a handle.
    Unsigned(u128),
    /// A float of 64 bits or fewer.
    Float(f64),
    /// A complex number: real part and imaginary part.
    Complex(f64, f64),
}

/// The number of bytes that are copied without an allocation.
const INLINE: usize = 64;

/// An iterator over all scalars of a tensor, from a copy of its memory.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// The number of bytes.
    len: usize,
    /// The bytes, if there are at most [`INLINE`].
    inline: [u8; INLINE],
    /// The bytes, if there are more.
    heap: Vec<u8>,
    /// The offset of the next scalar.
    at: usize,
    dtype: DataType,
    /// The size of a scalar in bytes.
    size: usize,
}

impl Numbers {
    /// No numbers yet, for [`copy_numbers`].
    pub const NONE: Self = Self {
        len: 0,
        inline: [0; INLINE],
        heap: Vec::new(),
        at: 0,
        dtype: DataType::U8,
        size: 1,
    };
}

/// Makes [`Numbers::NONE`] an iterator over the scalars of a tensor, which is copied, in C order of the indices. Lanes of an item
/// are consecutive.
///
/// The iterator is changed in place, because moves of it would cost as much as a few numbers.
///
/// ```
/// use dlpack_core::DLPack;
/// use dlpack_core::binding::{AnyNumber, Numbers, copy_numbers};
///
/// let managed = [1.5_f32, -0.25].into_dlpack()?;
/// let mut numbers = Numbers::NONE;
/// copy_numbers(&managed.view(), &mut numbers)?;
/// assert!(numbers.eq([1.5, -0.25].map(AnyNumber::Float)));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// Memory that the CPU cannot read, items that share bytes, or no memory for the copy.
pub fn copy_numbers(tensor: &TensorRef<'_>, numbers: &mut Numbers) -> Result<(), Error> {
    let (itemsize, size) = sizes(tensor)?;
    let items =
        usize::try_from(extent::count_items(tensor.shape()).unwrap_or(0)).unwrap_or(usize::MAX);
    let len = items.saturating_mul(itemsize);
    (numbers.len, numbers.at) = (len, 0);
    (numbers.dtype, numbers.size) = (tensor.dtype().with_lanes(1), size);
    if len <= INLINE {
        // SAFETY: the CPU can read the items, each of so many bytes, and there is space for all of them.
        unsafe { tensor.copy_items(itemsize, numbers.inline.as_mut_ptr()) };
        return Ok(());
    }
    let room = numbers.heap.try_reserve_exact(len);
    room.map_err(|_| Error::OutOfMemory { bytes: len })?;
    // SAFETY: as for the inline bytes: there is space for so many.
    unsafe { tensor.copy_items(itemsize, numbers.heap.as_mut_ptr()) };
    // SAFETY: `copy_items` has initialized so many bytes.
    unsafe { numbers.heap.set_len(len) };
    Ok(())
}

/// The only scalar of a tensor. `None` if there are more, or none.
///
/// ```
/// use dlpack_core::DLPack;
/// use dlpack_core::binding::{AnyNumber, only_number};
///
/// assert_eq!(only_number(&[1.5_f32].into_dlpack()?.view())?, Some(AnyNumber::Float(1.5)));
/// assert_eq!(only_number(&[1, 2].into_dlpack()?.view())?, None);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// Memory that the CPU cannot read, and items that share bytes.
pub fn only_number(tensor: &TensorRef<'_>) -> Result<Option<AnyNumber>, Error> {
    if tensor.shape().iter().any(|&extent| extent != 1) || tensor.dtype().lanes() != 1 {
        return Ok(None);
    }
    tensor.check_host_readable()?;
    let dtype = tensor.dtype();
    // The widest scalar is a complex number of two `f64`, or an integer of 128 bits.
    let mut bytes = [0; 16];
    let Some(bytes) = dtype.itemsize().and_then(|size| bytes.get_mut(..size)) else {
        return Err(wrong_type(dtype));
    };
    // SAFETY: the CPU can read the items, of which there is one with as many bytes, and there is space for it.
    unsafe { copy_only_item(tensor, bytes.len(), bytes.as_mut_ptr()) };
    Ok(Some(convert_scalar(dtype, bytes)))
}

/// Copies the item of a tensor that has one, as [`TensorRef::copy_items`] does.
///
/// # Safety
///
/// The contract of [`TensorRef::copy_items`]. The tensor has one item.
#[inline]
unsafe fn copy_only_item(tensor: &TensorRef<'_>, itemsize: usize, to: *mut u8) {
    let load = |itemsize, alignment| {
        // SAFETY: as in `copy_items`; the address of the tensor is that of its only item.
        unsafe { load_bytes(tensor.as_ptr(), to, itemsize, alignment) }
    };
    let alignment = tensor.as_ptr().addr() | 16;
    // With a constant size, the copy is one load.
    match itemsize {
        8 if alignment % 8 == 0 => load(8, 8),
        4 if alignment % 4 == 0 => load(4, 4),
        2 if alignment % 2 == 0 => load(2, 2),
        1 => load(1, 1),
        _ => load(itemsize, alignment),
    }
}

/// The size of an item and that of a scalar, if the CPU can read them.
#[inline]
fn sizes(tensor: &TensorRef<'_>) -> Result<(usize, usize), Error> {
    tensor.check_host_readable()?;
    let dtype = tensor.dtype();
    match (dtype.itemsize(), dtype.with_lanes(1).itemsize()) {
        (Some(itemsize), Some(size)) => Ok((itemsize, size)),
        _ => Err(wrong_type(dtype)),
    }
}

#[cold]
fn wrong_type(found: DataType) -> Error {
    let needed = found.padded();
    Error::WrongDataType { found, needed }
}

impl Numbers {
    /// The type of each scalar.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The bytes of the next `count` scalars, or of all that are left.
    pub fn take_bytes(&mut self, count: usize) -> &[u8] {
        let start = self.at;
        let len = count.saturating_mul(self.size).min(self.len - start);
        self.at += len;
        &self.all_bytes()[start..start + len]
    }

    fn all_bytes(&self) -> &[u8] {
        match self.len {
            0..=INLINE => &self.inline[..self.len],
            _ => &self.heap,
        }
    }
}

impl Iterator for Numbers {
    type Item = AnyNumber;

    fn next(&mut self) -> Option<AnyNumber> {
        let end = self.at + self.size;
        let number = convert_scalar(self.dtype, self.all_bytes().get(self.at..end)?);
        self.at = end;
        Some(number)
    }
}

/// Converts the bytes of one scalar.
fn convert_scalar(dtype: DataType, bytes: &[u8]) -> AnyNumber {
    let code = dtype.code();
    match code {
        abi::kDLBool => AnyNumber::Bool(read_bits(bytes) != 0),
        abi::kDLInt => {
            let unused = 128 - 8 * bytes.len();
            AnyNumber::Signed((read_bits(bytes) << unused) as i128 >> unused)
        }
        abi::kDLComplex => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            AnyNumber::Complex(
                convert_float(abi::kDLFloat, real),
                convert_float(abi::kDLFloat, imaginary),
            )
        }
        abi::kDLFloat | abi::kDLBfloat | abi::kDLFloat8_e3m4..=abi::kDLFloat4_e2m1fn => {
            AnyNumber::Float(convert_float(code, bytes))
        }
        _ => AnyNumber::Unsigned(read_bits(bytes)),
    }
}

/// Reads bytes as an integer in native byte order.
fn read_bits(bytes: &[u8]) -> u128 {
    // One load for each of the sizes that occur.
    match bytes.len() {
        1 => bytes[0].into(),
        2 => u16::from_ne_bytes(first_bytes(bytes)).into(),
        4 => u32::from_ne_bytes(first_bytes(bytes)).into(),
        8 => u64::from_ne_bytes(first_bytes(bytes)).into(),
        _ => u128::from_ne_bytes(first_bytes(bytes)),
    }
}

/// Converts a slice to an array. The caller has checked its length.
fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("so many bytes")
}

/// The values of a float format that are not finite numbers.
#[derive(Clone, Copy, PartialEq)]
enum NonFinite {
    /// Infinities and NaNs as in IEEE 754.
    Ieee,
    /// One NaN pattern for each sign: all bits after the sign are ones.
    NanAllOnes,
    /// One NaN, with the pattern of negative zero.
    NanNegativeZero,
    FiniteOnly,
}

/// Converts a float of any format, without loss.
#[inline]
fn convert_float(code: u8, bytes: &[u8]) -> f64 {
    match (code, bytes.len()) {
        (abi::kDLFloat, 8) => f64::from_ne_bytes(first_bytes(bytes)),
        (abi::kDLFloat, 4) => f32::from_ne_bytes(first_bytes(bytes)).into(),
        _ => convert_small_float(code, bytes),
    }
}

/// Converts a float of a format that Rust has no type for.
#[inline(never)]
fn convert_small_float(code: u8, bytes: &[u8]) -> f64 {
    use NonFinite::{FiniteOnly, Ieee, NanAllOnes, NanNegativeZero};

    let bits = u64::try_from(read_bits(bytes)).unwrap_or(0);
    // The width of exponent and fraction, the bias, and the values that are not finite.
    let (exponent_bits, fraction_bits, bias, non_finite) = match code {
        abi::kDLFloat => (5, 10, 15, Ieee),
        abi::kDLBfloat => (8, 7, 127, Ieee),
        abi::kDLFloat8_e3m4 => (3, 4, 3, Ieee),
        abi::kDLFloat8_e4m3 => (4, 3, 7, Ieee),
        abi::kDLFloat8_e4m3b11fnuz => (4, 3, 11, NanNegativeZero),
        abi::kDLFloat8_e4m3fn => (4, 3, 7, NanAllOnes),
        abi::kDLFloat8_e4m3fnuz => (4, 3, 8, NanNegativeZero),
        abi::kDLFloat8_e5m2 => (5, 2, 15, Ieee),
        abi::kDLFloat8_e5m2fnuz => (5, 2, 16, NanNegativeZero),
        abi::kDLFloat6_e2m3fn => (2, 3, 1, FiniteOnly),
        abi::kDLFloat6_e3m2fn => (3, 2, 3, FiniteOnly),
        abi::kDLFloat8_e8m0fnu => {
            return if bits == 255 {
                f64::NAN
            } else {
                power_of_two(bits as i64 - 127)
            };
        }
        _ => (2, 1, 1, FiniteOnly),
    };
    let ones = |count: u32| (1_u64 << count) - 1;
    let fraction = bits & ones(fraction_bits);
    let exponent = bits >> fraction_bits & ones(exponent_bits);
    let is_negative = bits >> (fraction_bits + exponent_bits) & 1 == 1;
    let is_full = exponent == ones(exponent_bits);
    let is_nan = match non_finite {
        Ieee => is_full && fraction != 0,
        NanAllOnes => is_full && fraction == ones(fraction_bits),
        NanNegativeZero => is_negative && exponent == 0 && fraction == 0,
        FiniteOnly => false,
    };
    let size = if is_nan {
        f64::NAN
    } else if non_finite == Ieee && is_full {
        f64::INFINITY
    } else {
        // A subnormal number has no implicit leading one.
        let one = if exponent == 0 { 0 } else { 1 << fraction_bits };
        let exponent = exponent.max(1) as i64 - bias - i64::from(fraction_bits);
        (one + fraction) as f64 * power_of_two(exponent)
    };
    if is_negative { -size } else { size }
}

/// Two to the power `exponent`, which must be in the range of normal `f64` numbers.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DLPack;

    /// Inline or on the heap, one by one and by their bytes.
    #[test]
    fn numbers_of_any_count_are_read() {
        for count in 0..40_u16 {
            let values: Vec<_> = (0..count).map(|it| it * 1001).collect();
            let tensor = values.clone().into_dlpack().expect("a list of integers");
            let mut read = Numbers::NONE;
            copy_numbers(&tensor.view(), &mut read).expect("enough memory");
            let expected = values.iter().map(|it| AnyNumber::Unsigned((*it).into()));
            assert!(read.clone().eq(expected), "{count}");
            let mut rest = read;
            let (first, second) = (rest.take_bytes(7).to_vec(), rest.take_bytes(100).to_vec());
            let bytes: Vec<_> = values.iter().flat_map(|it| it.to_ne_bytes()).collect();
            assert_eq!(first, bytes[..first.len()], "{count}");
            assert_eq!(second, bytes[first.len()..], "{count}");
            assert_eq!(first.len(), 14.min(bytes.len()), "{count}");
            assert_eq!((rest.next(), rest.take_bytes(1)), (None, &[][..]));
        }
    }

    /// Compares each format with its specification: its greatest number, its least positive number, the distance of the
    /// numbers above 1, and the number of NaNs and infinities.
    #[test]
    fn small_floats_are_those_of_their_formats() {
        for (dtype, greatest, least, behind_one) in [
            (DataType::F8_E3M4, 15.5, 0.015_625, 0.0625),
            (DataType::F8_E4M3, 240.0, 0.001_953_125, 0.125),
            (DataType::F8_E4M3B11FNUZ, 30.0, 0.000_122_070_312_5, 0.125),
            (DataType::F8_E4M3FN, 448.0, 0.001_953_125, 0.125),
            (DataType::F8_E4M3FNUZ, 240.0, 0.000_976_562_5, 0.125),
            (DataType::F8_E5M2, 57_344.0, 0.000_015_258_789_062_5, 0.25),
            (
                DataType::F8_E5M2FNUZ,
                57_344.0,
                0.000_007_629_394_531_25,
                0.25,
            ),
            (DataType::F6_E2M3FN, 7.5, 0.125, 0.125),
            (DataType::F6_E3M2FN, 28.0, 0.0625, 0.25),
            (DataType::F4_E2M1FN, 6.0, 0.5, 0.5),
        ] {
            let bits = dtype.bits();
            let all = (0..=u8::MAX >> (8 - bits)).map(|byte| convert_float(dtype.code(), &[byte]));
            let mut finite: Vec<_> = all.clone().filter(|x| x.is_finite()).collect();
            finite.sort_by(f64::total_cmp);
            assert_eq!(finite.last(), Some(&greatest), "{dtype}");
            assert_eq!(finite[0], -greatest, "{dtype}");
            let above = |floor: f64| finite.iter().copied().find(|&x| x > floor);
            assert_eq!(above(0.0), Some(least), "{dtype}");
            assert_eq!(above(1.0), Some(1.0 + behind_one), "{dtype}");
            let (nan, infinite) = (all.clone().filter(|x| x.is_nan()).count(), |x: &f64| {
                x.is_infinite()
            });
            let expected = match dtype {
                DataType::F8_E3M4 => (30, 2),
                DataType::F8_E4M3 => (14, 2),
                DataType::F8_E5M2 => (6, 2),
                DataType::F8_E4M3FN => (2, 0),
                _ if bits < 8 => (0, 0),
                _ => (1, 0),
            };
            assert_eq!((nan, all.filter(infinite).count()), expected, "{dtype}");
        }
        let power = |byte| convert_float(abi::kDLFloat8_e8m0fnu, &[byte]);
        assert_eq!(
            [0, 127, 128, 254].map(power),
            [
                5.877_471_754_111_438e-39,
                1.0,
                2.0,
                1.701_411_834_604_692_3e38
            ]
        );
        assert!(power(255).is_nan());
    }

    #[test]
    fn floats_of_32_bits_are_those_of_rust() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            f32::MIN_POSITIVE,
            1e-45,
            f32::MAX,
            f32::INFINITY,
            0.1,
        ];
        for wanted in numbers {
            let found = convert_float(abi::kDLFloat, &wanted.to_ne_bytes());
            assert_eq!(found.to_bits(), f64::from(wanted).to_bits(), "{wanted}");
        }
        assert!(convert_float(abi::kDLFloat, &f32::NAN.to_ne_bytes()).is_nan());
    }

    #[test]
    fn brain_floats_are_the_upper_halves_of_those_of_32_bits() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            f32::MIN_POSITIVE,
            1e-39,
            f32::MAX,
            f32::INFINITY,
            0.1,
        ];
        for number in numbers {
            let upper = (number.to_bits() >> 16) as u16;
            let wanted = f32::from_bits(u32::from(upper) << 16);
            let found = convert_float(abi::kDLBfloat, &upper.to_ne_bytes());
            assert_eq!(found.to_bits(), f64::from(wanted).to_bits(), "{wanted}");
        }
        assert!(convert_float(abi::kDLBfloat, &0x7fc0_u16.to_ne_bytes()).is_nan());
    }
}
