//! DLPack data types: code, width, lanes, and whether sub-byte values are padded to whole bytes.

use core::fmt;

use crate::abi;

/// The type of one item of a tensor.
///
/// ```
/// use dlpack_core::DataType;
///
/// assert_eq!(DataType::F32.to_string(), "float32");
/// assert_eq!(DataType::F32.itemsize_bits(), 32);
/// assert_eq!(DataType::F32.with_lanes(4).to_string(), "float32x4");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType {
    /// As in the C struct, so that an export copies it as one word.
    in_c: abi::DLDataType,
    width: Width,
}

/// How many bits a value takes in memory. Two bytes, so that a [`DataType`] has no padding: a load of the field together with
/// padding would wait for the store of the field.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
enum Width {
    /// As many as it has.
    Packed,
    /// A whole byte, for a value of fewer bits.
    Padded,
}

macro_rules! data_types {
    ($($name:ident = $code:ident, $bits:literal, $text:literal;)*) => {
        impl DataType {
            $(#[doc = concat!("`", $text, "`: `", stringify!($code), "`, ", $bits, " bits.")]
            pub const $name: Self = Self::new(abi::$code, $bits, 1);)*
        }

        const NAMES: &[(DataType, &str)] = &[$((DataType::$name, $text)),*];
    };
}
data_types! {
    BOOL = kDLBool, 8, "bool";
    I8 = kDLInt, 8, "int8";
    I16 = kDLInt, 16, "int16";
    I32 = kDLInt, 32, "int32";
    I64 = kDLInt, 64, "int64";
    I128 = kDLInt, 128, "int128";
    U8 = kDLUInt, 8, "uint8";
    U16 = kDLUInt, 16, "uint16";
    U32 = kDLUInt, 32, "uint32";
    U64 = kDLUInt, 64, "uint64";
    U128 = kDLUInt, 128, "uint128";
    F16 = kDLFloat, 16, "float16";
    F32 = kDLFloat, 32, "float32";
    F64 = kDLFloat, 64, "float64";
    BF16 = kDLBfloat, 16, "bfloat16";
    C32 = kDLComplex, 32, "complex32";
    C64 = kDLComplex, 64, "complex64";
    C128 = kDLComplex, 128, "complex128";
    BC32 = kDLBcomplex, 32, "bcomplex32";
    F8_E3M4 = kDLFloat8_e3m4, 8, "float8_e3m4";
    F8_E4M3 = kDLFloat8_e4m3, 8, "float8_e4m3";
    F8_E4M3B11FNUZ = kDLFloat8_e4m3b11fnuz, 8, "float8_e4m3b11fnuz";
    F8_E4M3FN = kDLFloat8_e4m3fn, 8, "float8_e4m3fn";
    F8_E4M3FNUZ = kDLFloat8_e4m3fnuz, 8, "float8_e4m3fnuz";
    F8_E5M2 = kDLFloat8_e5m2, 8, "float8_e5m2";
    F8_E5M2FNUZ = kDLFloat8_e5m2fnuz, 8, "float8_e5m2fnuz";
    F8_E8M0FNU = kDLFloat8_e8m0fnu, 8, "float8_e8m0fnu";
    F6_E2M3FN = kDLFloat6_e2m3fn, 6, "float6_e2m3fn";
    F6_E3M2FN = kDLFloat6_e3m2fn, 6, "float6_e3m2fn";
    F4_E2M1FN = kDLFloat4_e2m1fn, 4, "float4_e2m1fn";
}

impl DataType {
    /// Returns a data type with any code, width and number of lanes. Whether DLPack defines it is checked when it is used.
    ///
    /// ```
    /// use dlpack_core::DataType;
    ///
    /// assert_eq!(DataType::new(2, 64, 1), DataType::F64);
    /// ```
    #[must_use]
    pub const fn new(code: u8, bits: u8, lanes: u16) -> Self {
        Self {
            in_c: abi::DLDataType { code, bits, lanes },
            width: Width::Packed,
        }
    }

    /// Returns this type with `lanes` scalars in each item, for example `float4` of a shader language.
    ///
    /// ```
    /// assert_eq!(dlpack_core::DataType::F32.with_lanes(4).itemsize_bits(), 128);
    /// ```
    #[must_use]
    pub const fn with_lanes(self, lanes: u16) -> Self {
        let in_c = abi::DLDataType { lanes, ..self.in_c };
        Self { in_c, ..self }
    }

    /// Returns this type with each sub-byte value padded to a whole byte. Types of whole bytes are returned unchanged.
    ///
    /// ```
    /// use dlpack_core::DataType;
    ///
    /// assert_eq!(DataType::F4_E2M1FN.itemsize_bits(), 4);
    /// assert_eq!(DataType::F4_E2M1FN.padded().itemsize_bits(), 8);
    /// assert_eq!(DataType::F32.padded(), DataType::F32);
    /// ```
    #[must_use]
    pub const fn padded(self) -> Self {
        let width = if self.in_c.bits % 8 == 0 {
            Width::Packed
        } else {
            Width::Padded
        };
        Self { width, ..self }
    }

    /// The type code from `dlpack.h`.
    ///
    /// ```
    /// assert_eq!(dlpack_core::DataType::BF16.code(), 4);
    /// ```
    #[must_use]
    pub const fn code(self) -> u8 {
        self.in_c.code
    }

    /// The width of one scalar in bits.
    ///
    /// ```
    /// assert_eq!(dlpack_core::DataType::C64.bits(), 64);
    /// ```
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.in_c.bits
    }

    /// The number of scalars in one item.
    ///
    /// ```
    /// assert_eq!(dlpack_core::DataType::U8.lanes(), 1);
    /// ```
    #[must_use]
    pub const fn lanes(self) -> u16 {
        self.in_c.lanes
    }

    /// Whether each sub-byte value is padded to a whole byte.
    ///
    /// ```
    /// assert!(!dlpack_core::DataType::F6_E2M3FN.is_padded());
    /// ```
    #[must_use]
    pub const fn is_padded(self) -> bool {
        matches!(self.width, Width::Padded)
    }

    /// The size of one item in bits.
    ///
    /// ```
    /// assert_eq!(dlpack_core::DataType::F6_E3M2FN.itemsize_bits(), 6);
    /// ```
    #[must_use]
    #[inline]
    pub const fn itemsize_bits(self) -> usize {
        let bits = if self.is_padded() { 8 } else { self.in_c.bits };
        bits as usize * self.in_c.lanes as usize
    }

    /// The size of one item in bytes, or `None` if an item is not a whole number of bytes.
    ///
    /// ```
    /// use dlpack_core::DataType;
    ///
    /// assert_eq!(DataType::F64.itemsize(), Some(8));
    /// assert_eq!(DataType::F4_E2M1FN.itemsize(), None);
    /// ```
    #[must_use]
    #[inline]
    pub const fn itemsize(self) -> Option<usize> {
        match self.itemsize_bits() {
            0 => None,
            bits if bits % 8 == 0 => Some(bits / 8),
            _ => None,
        }
    }

    /// The required alignment of an address that is read one scalar at a time.
    #[inline]
    pub(crate) const fn alignment(self) -> usize {
        let bytes = if self.in_c.code == abi::kDLComplex {
            self.in_c.bits as usize / 16
        } else {
            self.in_c.bits as usize / 8
        };
        match bytes {
            2 | 4 | 8 | 16 => bytes,
            _ => 1,
        }
    }

    /// Whether DLPack 1.3 defines this code with this width.
    ///
    /// ```
    /// use dlpack_core::DataType;
    ///
    /// assert!(DataType::F16.is_known());
    /// assert!(!DataType::new(99, 8, 1).is_known());
    /// assert!(!DataType::F32.with_lanes(0).is_known());
    /// // Newer than 1.3: it has a name, for messages, but is neither exported nor imported.
    /// assert!(!DataType::BC32.is_known());
    /// ```
    #[must_use]
    #[inline]
    pub const fn is_known(self) -> bool {
        let bits = self.in_c.bits;
        let known = match self.in_c.code {
            abi::kDLInt | abi::kDLUInt => matches!(bits, 8 | 16 | 32 | 64 | 128),
            abi::kDLFloat => matches!(bits, 16 | 32 | 64),
            abi::kDLOpaqueHandle => bits == 64,
            abi::kDLBfloat => bits == 16,
            abi::kDLComplex => matches!(bits, 32 | 64 | 128),
            abi::kDLBool => bits == 8,
            abi::kDLFloat8_e3m4..=abi::kDLFloat8_e8m0fnu => bits == 8,
            abi::kDLFloat6_e2m3fn | abi::kDLFloat6_e3m2fn => bits == 6,
            abi::kDLFloat4_e2m1fn => bits == 4,
            _ => false,
        };
        known && self.in_c.lanes > 0
    }

    /// The name of the scalar type, if it has one.
    pub(crate) const fn name(self) -> Option<&'static str> {
        let mut at = 0;
        while at < NAMES.len() {
            let (found, name) = NAMES[at];
            if found.in_c.code == self.in_c.code && found.in_c.bits == self.in_c.bits {
                return Some(name);
            }
            at += 1;
        }
        None
    }

    pub(crate) const fn from_abi(dtype: abi::DLDataType, padded: bool) -> Self {
        let dtype = Self {
            in_c: dtype,
            width: Width::Packed,
        };
        if padded { dtype.padded() } else { dtype }
    }
}

/// Returns the data type that `Display` writes as `name`, if it is one with a name and a single lane.
///
/// ```
/// use dlpack_core::{DataType, binding::dtype_of_name};
///
/// assert_eq!(dtype_of_name("bfloat16"), Some(DataType::BF16));
/// assert_eq!(dtype_of_name("float32x4"), None);
/// ```
#[must_use]
pub fn dtype_of_name(name: &str) -> Option<DataType> {
    let found = NAMES.iter().find(|(_, known)| *known == name);
    found.map(|(dtype, _)| *dtype)
}

impl From<DataType> for abi::DLDataType {
    #[inline]
    fn from(dtype: DataType) -> Self {
        dtype.in_c
    }
}

crate::device::debug_as_display!(DataType);

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = Self::new(self.in_c.code, self.in_c.bits, 1);
        match scalar.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "(code {}, {} bits)", self.in_c.code, self.in_c.bits)?,
        }
        if self.in_c.lanes != 1 {
            write!(f, "x{}", self.in_c.lanes)?;
        }
        if self.is_padded() {
            f.write_str(", one a byte")?;
        }
        Ok(())
    }
}

/// The memory order of the axes: which axis is contiguous.
///
/// ```
/// assert_eq!(dlpack_core::Order::default(), dlpack_core::Order::C);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Order {
    /// Row-major, as in C: the last axis.
    #[default]
    C,
    /// Column-major, as in Fortran: the first axis.
    F,
}

/// The trait of fields marked `order`: an [`Order`], or a user's type that converts to one.
///
/// ```
/// use dlpack_core::{AsOrder, Order};
///
/// struct FortranOrder(bool);
///
/// impl AsOrder for FortranOrder {
///     fn as_order(&self) -> Order {
///         if self.0 { Order::F } else { Order::C }
///     }
/// }
/// assert_eq!(FortranOrder(true).as_order(), Order::F);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name an order of axes",
    label = "expected `Order` or a type implementing `AsOrder`"
)]
pub trait AsOrder {
    /// Returns the memory order of the axes.
    fn as_order(&self) -> Order;
}

impl AsOrder for Order {
    #[inline]
    fn as_order(&self) -> Order {
        *self
    }
}

impl<O: AsOrder + ?Sized> AsOrder for &O {
    #[inline]
    fn as_order(&self) -> Order {
        (**self).as_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use alloc::{format, string::ToString};

    #[test]
    fn a_complex_number_is_aligned_as_its_parts() {
        for (dtype, alignment) in [
            (DataType::C64, 4),
            (DataType::C128, 8),
            (DataType::F64, 8),
            (DataType::U8, 1),
        ] {
            assert_eq!(dtype.alignment(), alignment, "{dtype}");
        }
    }

    /// Every named constant is a data type that DLPack 1.3 defines for values, so none is an opaque handle; except for those of
    /// later headers, which are refused by their names.
    // DTY-10, DTY-15, DTY-16, DTY-17
    #[test]
    fn only_what_consumers_read_has_a_name() {
        for (dtype, name) in NAMES {
            assert_eq!(dtype.is_known(), *dtype != DataType::BC32, "{name}");
            assert_ne!(dtype.code(), abi::kDLOpaqueHandle, "{name}");
        }
        let bcomplex_of_later_headers = DataType::new(18, 32, 1);
        let four_bit_integers = DataType::new(abi::kDLInt, 4, 1);
        for (found, name) in [
            (bcomplex_of_later_headers, "bcomplex32"),
            (four_bit_integers, "(code 0, 4 bits)"),
        ] {
            assert!(!found.is_known());
            let refused = Error::UnknownDataType { found }.to_string();
            assert_eq!(refused, format!("DLPack 1.3 has no data type {name}"));
        }
    }
}
