//! The 16-bit floats of `half`, and the complex numbers of `num-complex`. Each value is one item.
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

use crate::{DataType, element::scalars};

// Both types are `repr(transparent)` over a `u16`, as their documentation shows, and their safe `from_bits` accepts any
// `u16`. So any bytes are a value (`true`).
#[cfg(feature = "half")]
scalars! {
    ::half::f16 => DataType::F16, true;
    ::half::bf16 => DataType::BF16, true;
}
#[cfg(feature = "half")]
const _: () = assert!(size_of::<::half::f16>() == 2 && size_of::<::half::bf16>() == 2);

// `Complex<T>` is documented to be `repr(C)` and layout compatible with `[T; 2]`, real part first. So it has no padding,
// and any bytes are a value if any bytes are a `T`.
#[cfg(feature = "num-complex")]
macro_rules! complex {
    ($($part:ty => $dtype:ident;)*) => {$(
        scalars! { ::num_complex::Complex<$part> => DataType::$dtype, true; }
        const _: () = assert!(size_of::<::num_complex::Complex<$part>>() == 2 * size_of::<$part>());
    )*};
}
#[cfg(feature = "num-complex")]
complex! {
    f32 => C64;
    f64 => C128;
}
#[cfg(all(feature = "num-complex", feature = "half"))]
complex! {
    ::half::f16 => C32;
}
