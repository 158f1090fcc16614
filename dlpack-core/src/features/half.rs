//! The 16-bit floats of `half`.
#![expect(
    unsafe_code,
    reason = "`Element` is a promise about memory layout, here of another crate's types"
)]

use ::half::{bf16, f16};

use crate::{DataType, element::scalars};

// Both are `repr(transparent)` over a `u16`, as their documentation shows, and both can be made of
// any `u16` by the safe `from_bits`.
scalars! {
    f16 => DataType::F16, true;
    bf16 => DataType::BF16, true;
}

const _: () = assert!(size_of::<f16>() == 2 && size_of::<bf16>() == 2);
