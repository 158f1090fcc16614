//! Small floats that share bytes. Each type is the smallest group of them that fills whole bytes.
//!
//! A tensor of 4-bit or 6-bit floats that share bytes has no address for a single item, so the element is a
//! group: two of 4 bits in one byte, four of 6 bits in three. Items are numbered from the lowest bit
//! of the first byte on.
// DTY-11
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

use crate::DataType;
use crate::element::{axes::Axes, scalars};

macro_rules! groups {
    ($(
        $(#[$doc:meta])*
        $name:ident: $count:literal x $dtype:ident, $bits:literal bits in $bytes:literal;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name([u8; $bytes]);

        impl $name {
            #[doc = concat!(
                "Packs ", $count, " items, given by their codes. Only the low ", $bits,
                " bits of each code are used.\n\n",
                "```\n",
                "use dlpack_core::element::", stringify!($name), ";\n\n",
                "let codes = [3; ", $count, "];\n",
                "assert_eq!(", stringify!($name), "::pack(codes).unpack(), codes);\n",
                "```",
            )]
            #[must_use]
            pub const fn pack(codes: [u8; $count]) -> Self {
                let mut bits = 0_u32;
                let mut item = 0;
                while item < $count {
                    bits |= (codes[item] as u32 & MASK[$bits]) << (item * $bits);
                    item += 1;
                }
                Self(*bits.to_le_bytes().first_chunk().unwrap())
            }

            #[doc = concat!(
                "Returns the codes of the ", $count, " items.\n\n",
                "```\n",
                "use dlpack_core::element::", stringify!($name), ";\n\n",
                "assert_eq!(", stringify!($name), "::default().unpack(), [0; ", $count, "]);\n",
                "```",
            )]
            #[must_use]
            pub const fn unpack(self) -> [u8; $count] {
                let mut bits = 0_u32;
                let mut byte = 0;
                while byte < $bytes {
                    bits |= (self.0[byte] as u32) << (8 * byte);
                    byte += 1;
                }
                let mut codes = [0; $count];
                let mut item = 0;
                while item < $count {
                    codes[item] = (bits >> (item * $bits) & MASK[$bits]).to_le_bytes()[0];
                    item += 1;
                }
                codes
            }

            #[doc = concat!(
                "Makes a group from its bytes.\n\n",
                "```\n",
                "use dlpack_core::element::", stringify!($name), ";\n\n",
                "assert_eq!(", stringify!($name), "::from_bytes([1; ", $bytes, "]).unpack()[0], 1);\n",
                "```",
            )]
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            #[doc = concat!(
                "Returns the bytes of the group.\n\n",
                "```\n",
                "use dlpack_core::element::", stringify!($name), ";\n\n",
                "assert_eq!(", stringify!($name), "::default().to_bytes(), [0; ", $bytes, "]);\n",
                "```",
            )]
            #[must_use]
            pub const fn to_bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        // A transparent wrapper around bytes: all are initialised, there is no interior mutability, any bytes are a value, and
        // they are those of a group of `$count` items.
        scalars! {
            $name => DataType::$dtype, true, Axes::of_array($count, Axes::NONE);
        }

        const _: () = assert!(size_of::<$name>() * 8 == $count * DataType::$dtype.itemsize_bits());
    )*};
}

/// `MASK[n]` has the low `n` bits.
const MASK: [u32; 7] = [0, 1, 3, 7, 15, 31, 63];

groups! {
    /// Two 4-bit floats with 2 bits of exponent and 1 of mantissa in a byte: the first in the low
    /// four bits.
    ///
    /// As an element it adds an axis of size 2. A tensor of `float4_e2m1fn` whose last axis has an even size can be read as pairs.
    /// A last axis of size 2 is the axis of the pairs.
    ///
    /// ```
    /// use dlpack_core::{DLPack, DataType};
    /// use dlpack_core::element::F4E2M1FNx2;
    ///
    /// let pairs = vec![F4E2M1FNx2::pack([0x1, 0x2]), F4E2M1FNx2::pack([0x3, 0x4])];
    /// assert_eq!(pairs[0].to_bytes(), [0x21]);
    ///
    /// let tensor = pairs.clone().into_dlpack()?;
    /// assert_eq!(tensor.view().dtype(), DataType::F4_E2M1FN);
    /// assert_eq!(tensor.view().shape(), [2, 2]);
    /// assert_eq!(tensor.view().as_slice::<F4E2M1FNx2>()?, pairs);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// Bytes can be exported without the axis of 2, with the data type of their items:
    ///
    /// ```
    /// use dlpack_core::{DLPack, DataType};
    ///
    /// #[derive(DLPack)]
    /// #[dlpack(dtype = DataType::F4_E2M1FN, shape = [self.rows, 64])]
    /// struct Weights {
    ///     #[dlpack(data)]
    ///     bytes: Vec<u8>,
    ///     rows: usize,
    /// }
    ///
    /// let weights = Weights { bytes: vec![0; 256], rows: 8 };
    /// assert_eq!(weights.into_dlpack()?.view().shape(), [8, 64]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    F4E2M1FNx2: 2 x F4_E2M1FN, 4 bits in 1;

    /// Four 6-bit floats with 2 bits of exponent and 3 of mantissa in three bytes, from the lowest bit
    /// of the first one on.
    ///
    /// As an element it adds an axis of size 4.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    /// use dlpack_core::element::F6E2M3FNx4;
    ///
    /// let group = F6E2M3FNx4::pack([0x01, 0x02, 0x03, 0x3f]);
    /// assert_eq!(group.to_bytes(), [0x81, 0x30, 0xfc]);
    /// assert_eq!([group; 5].into_dlpack()?.view().shape(), [5, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    F6E2M3FNx4: 4 x F6_E2M3FN, 6 bits in 3;

    /// Four 6-bit floats with 3 bits of exponent and 2 of mantissa in three bytes, from the lowest bit
    /// of the first one on.
    ///
    /// As an element it adds an axis of size 4.
    ///
    /// ```
    /// use dlpack_core::DLPack;
    /// use dlpack_core::element::F6E3M2FNx4;
    ///
    /// let group = F6E3M2FNx4::pack([0x01, 0x02, 0x03, 0x3f]);
    /// assert_eq!(group.to_bytes(), [0x81, 0x30, 0xfc]);
    /// assert_eq!([group; 5].into_dlpack()?.view().shape(), [5, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    F6E3M2FNx4: 4 x F6_E3M2FN, 6 bits in 3;
}
