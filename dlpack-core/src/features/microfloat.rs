//! The small floats of `microfloat`, padded to one byte each, and conversions to and from packed groups.
//!
//! Names and encodings are those of DLPack:
//!
//! | suffix | means |
//! |---|---|
//! | none | infinities and NaNs as in IEEE 754 |
//! | `fn` | no infinities; NaN is all ones after the sign, and the formats of 4 and 6 bits have no NaN |
//! | `fnuz` | no infinities and no negative zero; the code of negative zero is the only NaN |
//! | `fnu` | unsigned: a power of two; all ones is NaN |
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

use ::microfloat::{
    f4e2m1fn, f6e2m3fn, f6e3m2fn, f8e3m4, f8e4m3, f8e4m3b11fnuz, f8e4m3fn, f8e4m3fnuz, f8e5m2,
    f8e5m2fnuz, f8e8m0fnu,
};

use crate::DataType;
use crate::element::{F4E2M1FNx2, F6E2M3FNx4, F6E3M2FNx4, scalars};

// Each type is `repr(transparent)` over a byte, as its documentation shows, and its safe `from_bits` accepts any byte.
// This includes the types of fewer than 8 bits: their upper bits are preserved, and mean the same as in `ml_dtypes`.
// So the bytes need no check.
scalars! {
    f8e3m4 => DataType::F8_E3M4, true;
    f8e4m3 => DataType::F8_E4M3, true;
    f8e4m3b11fnuz => DataType::F8_E4M3B11FNUZ, true;
    f8e4m3fn => DataType::F8_E4M3FN, true;
    f8e4m3fnuz => DataType::F8_E4M3FNUZ, true;
    f8e5m2 => DataType::F8_E5M2, true;
    f8e5m2fnuz => DataType::F8_E5M2FNUZ, true;
    f8e8m0fnu => DataType::F8_E8M0FNU, true;
    f6e2m3fn => DataType::F6_E2M3FN.padded(), true;
    f6e3m2fn => DataType::F6_E3M2FN.padded(), true;
    f4e2m1fn => DataType::F4_E2M1FN.padded(), true;
}

macro_rules! groups {
    ($($float:ident x $count:literal is $group:ident;)*) => {$(
        const _: () = assert!(size_of::<$float>() == 1);

        impl From<[$float; $count]> for $group {
            #[doc = concat!(
                "Packs floats that take a byte each.\n\n",
                "```\n",
                "use dlpack_core::element::", stringify!($group), ";\n",
                "use microfloat::", stringify!($float), ";\n\n",
                "let floats = [", stringify!($float), "::ONE; ", $count, "];\n",
                "assert_eq!(<[", stringify!($float), "; ", $count, "]>::from(",
                stringify!($group), "::from(floats)), floats);\n",
                "```",
            )]
            fn from(floats: [$float; $count]) -> Self {
                Self::pack(floats.map($float::to_bits))
            }
        }

        impl From<$group> for [$float; $count] {
            /// Unpacks the group to one byte for each float.
            fn from(group: $group) -> Self {
                group.unpack().map($float::from_bits)
            }
        }
    )*};
}
groups! {
    f4e2m1fn x 2 is F4E2M1FNx2;
    f6e2m3fn x 4 is F6E2M3FNx4;
    f6e3m2fn x 4 is F6E3M2FNx4;
}
