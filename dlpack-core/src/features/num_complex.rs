//! The complex numbers of `num-complex`: one item each, real part first.
#![expect(
    unsafe_code,
    reason = "`Element` is a promise about memory layout, here of another crate's types"
)]

use ::num_complex::Complex;

use crate::{DataType, element::scalars};

// `Complex<T>` is documented to be `repr(C)` and layout compatible with `[T; 2]`, the real part
// first: without padding, and any bytes are one where any bytes are a `T`.
scalars! {
    Complex<f32> => DataType::C64, true;
    Complex<f64> => DataType::C128, true;
}
#[cfg(feature = "half")]
scalars! {
    Complex<::half::f16> => DataType::C32, true;
}

const _: () = assert!(size_of::<Complex<f32>>() == 8 && size_of::<Complex<f64>>() == 16);
#[cfg(feature = "half")]
const _: () = assert!(size_of::<Complex<::half::f16>>() == 4);
