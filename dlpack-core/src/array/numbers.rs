//! How the numbers of each type are added, multiplied and compared, for the reductions of `reduce`.
#![expect(
    unsafe_code,
    reason = "calls code that is compiled for processors with AVX2"
)]

use core::hint::black_box;

use crate::array::reduce::{LINES, Reduction, reduce_elements, reduce_pairs};
use crate::array::{Array, Rank};
use crate::element::Plain;

/// A number that [`Array::sum`], [`Array::min`], [`Array::max`] and [`Array::dot`] take: an integer, `f32` or `f64`.
pub trait Number: Plain {
    /// The type of a sum: `u64` or `i64` for integers of up to 64 bits, as in NumPy; otherwise the type itself.
    type Sum: Copy;

    #[doc(hidden)]
    fn sum_of<L: Rank>(array: &Array<Self, L>) -> Self::Sum;

    #[doc(hidden)]
    fn min_of<L: Rank>(array: &Array<Self, L>) -> Self;

    #[doc(hidden)]
    fn max_of<L: Rank>(array: &Array<Self, L>) -> Self;

    #[doc(hidden)]
    fn dot_of<L: Rank, M: Rank>(array: &Array<Self, L>, other: &Array<Self, M>) -> Self::Sum;
}

/// Compiles a function twice, for any processor and for processors with AVX2, whose registers have 32 bytes, and runs the one that
/// the processor supports. Both read memory 16 bytes at a time, as `memory/atomic.rs` requires.
macro_rules! widened {
    (
        fn $run:ident<const AVX: bool, $($rank:ident: Rank),+>(
            $($array:ident: $type:ty),+ $(,)?
        ) -> $result:ty $body:block
    ) => {{
        /// # Safety
        ///
        /// With `AVX`, the processor has AVX.
        #[inline(always)]
        unsafe fn $run<const AVX: bool, $($rank: Rank),+>($($array: $type),+) -> $result $body

        #[cfg(all(target_arch = "x86_64", feature = "std", not(miri)))]
        {
            /// # Safety
            ///
            /// The processor has AVX2.
            #[target_feature(enable = "avx2")]
            unsafe fn run_wide<$($rank: Rank),+>($($array: $type),+) -> $result {
                // SAFETY: AVX2 includes AVX.
                unsafe { $run::<true, $($rank),+>($($array),+) }
            }

            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as was just detected.
                return unsafe { run_wide($($array),+) };
            }
        }
        // SAFETY: without `AVX` there is no condition.
        unsafe { $run::<false, $($rank),+>($($array),+) }
    }};
}

macro_rules! numbers {
    ($($number:ident: $few:ident, $sum:ident, $line:literal, $kind:ident;)*) => {$(
        impl Number for $number {
            type Sum = $sum;

            fn sum_of<L: Rank>(array: &Array<Self, L>) -> $sum {
                let add = |a: $sum, b: $sum| $kind::add!(a, b);
                let step = |sums: &mut [$few; $line], line: &[Self; $line]| {
                    for place in 0..$line {
                        let sum = sums[place];
                        sums[place] = $kind::add!(sum, line[place] as $few);
                    }
                };
                let collect = |sums: [$few; $line]| {
                    sums.into_iter().fold(0 as $sum, |all, sum| add(all, sum as $sum))
                };
                let step_pair = |sums: &mut [$few; $line], a: &[Self; $line], b: &[Self; $line]| {
                    step(sums, a);
                    step(sums, b);
                };
                let how = Reduction {
                    start: [0 as $few; $line],
                    step,
                    step_pair,
                    most_lines: LINES,
                    collect,
                    zero: 0 as $sum,
                    add,
                    pad: 0 as $number,
                };
                // SAFETY: without `AVX` there is no condition.
                unsafe { reduce_elements::<_, _, _, _, $line, false>(array, &how) }
            }

            fn min_of<L: Rank>(array: &Array<Self, L>) -> Self {
                extreme!($kind, $number, $line, array, <, $kind::most!($number))
            }

            fn max_of<L: Rank>(array: &Array<Self, L>) -> Self {
                extreme!($kind, $number, $line, array, >, $kind::least!($number))
            }

            fn dot_of<L: Rank, M: Rank>(array: &Array<Self, L>, other: &Array<Self, M>) -> $sum {
                widened! {
                    fn reduce_array<const AVX: bool, L: Rank, M: Rank>(
                        array: &Array<$number, L>,
                        other: &Array<$number, M>,
                    ) -> $sum {
                        let add = |a: $sum, b: $sum| $kind::add!(a, b);
                        let step = |sums: &mut [$sum; $line], a: &[$number; $line], b: &[$number; $line]| {
                            for place in 0..$line {
                                let product = $kind::multiply!(a[place] as $sum, b[place] as $sum);
                                sums[place] = add(sums[place], product);
                            }
                        };
                        let collect = |sums: [$sum; $line]| sums.into_iter().fold(0 as $sum, add);
                        let (start, pad) = ([0 as $sum; $line], 0 as $number);
                        // SAFETY: same contract as this function's: with `AVX`, the processor has AVX.
                        unsafe {
                            reduce_pairs::<_, _, _, _, _, $line, AVX>(array, other, start, pad, step, collect, add)
                        }
                    }
                }
            }
        }
    )*};
}

/// The smallest or largest element of an array. NaN is tracked by separate flags, so that a comparison of numbers is one
/// instruction.
macro_rules! extreme {
    ($kind:ident, $number:ident, $line:literal, $array:ident, $closer:tt, $start:expr) => {
        widened! {
            fn reduce_array<const AVX: bool, L: Rank>($array: &Array<$number, L>) -> $number {
                let closer = |a: $number, b: $number| {
                    if b $closer a || $kind::is_nan!(b) { b } else { a }
                };
                // A comparison waits for the previous one with the same accumulator, but not for that of a pair.
                let step_pair = |
                    (found, is_nan): &mut ([$number; $line], [$kind::Flag!($number); $line]),
                    a: &[$number; $line],
                    b: &[$number; $line],
                | {
                    for place in 0..$line {
                        let (a, b, so_far) = (a[place], b[place], found[place]);
                        let value = if a $closer b { a } else { b };
                        found[place] = if value $closer so_far { value } else { so_far };
                        let any_nan = $kind::is_nan!(a) | $kind::is_nan!(b);
                        // All bits, as in the result of a comparison of vectors.
                        is_nan[place] |= <$kind::Flag!($number)>::from(any_nan).wrapping_neg();
                    }
                };
                let step = |accumulators: &mut _, line: &[$number; $line]| step_pair(accumulators, line, line);
                let collect = |accumulators: ([$number; $line], [$kind::Flag!($number); $line])| {
                    // Without it the compiler permutes the lanes of the loop to suit the order of this fold.
                    let (found, is_nan) = black_box(accumulators);
                    if is_nan.into_iter().any(|flag| flag != 0) {
                        return $kind::nan!($number);
                    }
                    found.into_iter().fold($start, |a, b| if b $closer a { b } else { a })
                };
                let how = Reduction {
                    start: ([$start; $line], [0; $line]),
                    step,
                    step_pair,
                    most_lines: usize::MAX,
                    collect,
                    zero: $start,
                    add: closer,
                    pad: $start,
                };
                // SAFETY: same contract as this function's: with `AVX`, the processor has AVX.
                unsafe { reduce_elements::<_, _, _, _, $line, AVX>($array, &how) }
            }
        }
    };
}

/// How integers are added and compared.
mod integer {
    macro_rules! add {
        ($a:expr, $b:expr) => {
            $a.wrapping_add($b)
        };
    }
    macro_rules! multiply {
        ($a:expr, $b:expr) => {
            ($a).wrapping_mul($b)
        };
    }
    macro_rules! is_nan {
        ($number:expr) => {
            false
        };
    }
    // Never evaluated, because no integer is NaN.
    macro_rules! nan {
        ($number:ident) => {
            $number::MIN
        };
    }
    macro_rules! Flag {
        ($number:ident) => {
            u8
        };
    }
    macro_rules! least {
        ($number:ident) => {
            $number::MIN
        };
    }
    macro_rules! most {
        ($number:ident) => {
            $number::MAX
        };
    }
    pub(super) use {Flag, add, is_nan, least, most, multiply, nan};
}

/// How floats are added and compared. NaN is both smaller and larger than any number.
mod float {
    macro_rules! add {
        ($a:expr, $b:expr) => {
            $a + $b
        };
    }
    macro_rules! multiply {
        ($a:expr, $b:expr) => {
            ($a) * ($b)
        };
    }
    macro_rules! is_nan {
        ($number:expr) => {
            $number.is_nan()
        };
    }
    macro_rules! nan {
        ($number:ident) => {
            $number::NAN
        };
    }
    /// An integer as wide as the float, so that a register has as many flags as floats.
    macro_rules! Flag {
        (f32) => {
            u32
        };
        (f64) => {
            u64
        };
    }
    macro_rules! least {
        ($number:ident) => {
            $number::NEG_INFINITY
        };
    }
    macro_rules! most {
        ($number:ident) => {
            $number::INFINITY
        };
    }
    pub(super) use {Flag, add, is_nan, least, most, multiply, nan};
}

numbers! {
    u8: u16, u64, 64, integer;
    u16: u32, u64, 32, integer;
    u32: u64, u64, 16, integer;
    u64: u64, u64, 8, integer;
    u128: u128, u128, 4, integer;
    i8: i16, i64, 64, integer;
    i16: i32, i64, 32, integer;
    i32: i64, i64, 16, integer;
    i64: i64, i64, 8, integer;
    i128: i128, i128, 4, integer;
    f32: f32, f32, 16, float;
    f64: f64, f64, 8, float;
}

#[cfg(target_pointer_width = "64")]
numbers! {
    usize: u64, u64, 8, integer;
    isize: i64, i64, 8, integer;
}
#[cfg(target_pointer_width = "32")]
numbers! {
    usize: u64, u64, 16, integer;
    isize: i64, i64, 16, integer;
}
