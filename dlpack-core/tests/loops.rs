//! Loops over typed arrays: lengths and addresses near multiples of a cache line, functions that panic, overlapping memory.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "small numbers, and random ones whose low bits are enough"
)]

mod dice;
mod made;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use dice::Dice;
use dlpack_core::abi::DLDataType;
use dlpack_core::array::{View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::{DLPack, Error, Managed};
use made::{BOOL, F32, Foreign, I32, U8, dtype};

const U16: DLDataType = dtype(1, 16, 1);
const U64: DLDataType = dtype(1, 64, 1);
const F64: DLDataType = dtype(2, 64, 1);

/// A shared tensor at any address.
fn import(data: *mut u8, dtype: DLDataType, shape: &[usize], trailing: &[usize]) -> Managed {
    let shape: Vec<i64> = shape
        .iter()
        .chain(trailing)
        .map(|&extent| extent as i64)
        .collect();
    let foreign = Foreign::new(data, dtype, &shape);
    // SAFETY: a valid tensor over memory that each test keeps alive.
    unsafe { Managed::from_raw(foreign.versioned()) }
        .unwrap()
        .shared()
}

fn bytes<T: Plain>(elements: &[T]) -> Vec<u8> {
    // SAFETY: a `Plain` type is initialised memory without padding.
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }
        .to_vec()
}

/// Bytes that differ from their neighbours.
fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|index| (index * 37 + index / 256) as u8)
        .collect()
}

/// Lengths near the size of a cache line, fewer under Miri.
fn lengths() -> impl Iterator<Item = usize> {
    let (few, many) = if cfg!(miri) {
        (0..2, vec![70])
    } else {
        (0..150, vec![600, 4099])
    };
    few.chain(many)
}

fn offsets() -> impl Iterator<Item = usize> {
    (0..18).step_by(if cfg!(miri) { 7 } else { 1 })
}

type Write<'a, T> = &'a mut dyn FnMut(&mut ViewMut<T, [i64; 1]>);

/// Writes to contiguous elements at any address by each method, and compares all of the memory.
fn writes<T: Plain>(dtype: DLDataType, trailing: &[usize], change: fn(T) -> T) {
    // Aligned to 64 bytes, so that the tested offsets are all offsets in a cache line.
    #[repr(align(64))]
    struct Aligned([u8; 1 << 17]);
    let mut memory = Box::new(Aligned([0; 1 << 17]));
    let mut source = Box::new(Aligned([0; 1 << 17]));
    for len in lengths() {
        for offset in offsets() {
            let (begin, size) = (64 + offset, len * size_of::<T>());
            let all = begin + size + 64;
            let mut check = |what: &str, values: &[u8], write: Write<'_, T>| {
                let before = pattern(all);
                memory.0[..all].copy_from_slice(&before);
                let data = memory.0.as_mut_ptr().wrapping_add(begin);
                let mut array = ViewMut::new(import(data, dtype, &[len], trailing)).unwrap();
                write(&mut array);
                drop(array);
                let mut expected = before;
                expected[begin..begin + size].copy_from_slice(values);
                assert!(memory.0[..all] == expected, "{what} of {len} at {offset}");
            };
            let old = pattern(all);
            let mut old_elements: Vec<T> = Vec::with_capacity(len);
            // SAFETY: the capacity is `len` elements, and any bytes are a valid element.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    old.as_ptr().wrapping_add(begin),
                    old_elements.as_mut_ptr().cast(),
                    size,
                )
            };
            // SAFETY: `copy_nonoverlapping` just wrote `len` elements.
            unsafe { old_elements.set_len(len) };
            let new: Vec<T> = old_elements
                .iter()
                .map(|&element| change(element))
                .collect();
            check("update", &bytes(&new), &mut |array| array.update(change));
            let mut seen = Vec::new();
            check("order of update", &bytes(&new), &mut |array| {
                array.update(|element| {
                    seen.push(element);
                    change(element)
                });
            });
            assert_eq!(bytes(&seen), bytes(&old_elements), "{len} at {offset}");
            if let Some(&first) = new.first() {
                check("fill", &bytes(&vec![first; len]), &mut |array| {
                    array.fill(first)
                });
            }
            check("copy_from_slice", &bytes(&new), &mut |array| {
                array.copy_from_slice(&new).unwrap()
            });
            for skew in [offset, 0, 3] {
                source.0[64 + skew..64 + skew + size].copy_from_slice(&bytes(&new));
                let data = source.0.as_mut_ptr().wrapping_add(64 + skew);
                let from = View::<T, [i64; 1]>::new(import(data, dtype, &[len], trailing)).unwrap();
                check("copy_from", &bytes(&new), &mut |array| {
                    array.copy_from(&from).unwrap()
                });
            }
        }
    }
}

#[test]
fn writes_of_every_length_and_address() {
    writes::<i32>(I32, &[], |x| x.wrapping_mul(3).wrapping_add(1));
    writes::<u8>(U8, &[], |x| x.wrapping_mul(3).wrapping_add(1));
    if cfg!(miri) {
        return;
    }
    writes::<u16>(U16, &[], |x| x.wrapping_mul(3).wrapping_add(1));
    writes::<u64>(U64, &[], |x| x.wrapping_mul(3).wrapping_add(1));
    writes::<f32>(F32, &[], |x| f32::from_bits(x.to_bits().wrapping_mul(3)));
    writes::<f64>(F64, &[], |x| f64::from_bits(x.to_bits().wrapping_mul(3)));
    writes::<[u8; 3]>(U8, &[3], |[a, b, c]| [b, c, a]);
    writes::<[u8; 4]>(U8, &[4], |[a, b, c, d]| [b, c, d, a]);
    writes::<[u64; 3]>(U64, &[3], |[a, b, c]| [b, c, a]);
    writes::<[u32; 4]>(dtype(1, 32, 1), &[4], |[a, b, c, d]| [b, c, d, a]);
}

/// Collects contiguous elements at any address.
fn collects<T: Plain + PartialEq + core::fmt::Debug>(dtype: DLDataType, trailing: &[usize]) {
    let mut memory = pattern(if cfg!(miri) { 2000 } else { 1 << 17 });
    for len in lengths() {
        for offset in offsets() {
            let expected = memory[offset..offset + len * size_of::<T>()].to_vec();
            let data = memory.as_mut_ptr().wrapping_add(offset);
            let array = View::<T, [i64; 1]>::new(import(data, dtype, &[len], trailing)).unwrap();
            assert!(
                bytes(&array.iter().collect::<Vec<T>>()) == expected,
                "{len} at {offset}"
            );
            let results: Vec<Option<T>> = array.iter().map(Some).collect();
            let results: Vec<T> = results.into_iter().flatten().collect();
            assert!(bytes(&results) == expected, "results of {len} at {offset}");
            let mut folded = Vec::new();
            array.iter().for_each(|element| folded.push(element));
            assert!(bytes(&folded) == expected, "folded {len} at {offset}");
            // Results with the size of an element.
            let results: Vec<T> = array.iter().map(|element| element).collect();
            assert!(bytes(&results) == expected, "items of {len} at {offset}");
            // Another collection, and a function that stops early.
            let mut calls = 0;
            let stopped: Option<Vec<T>> = array
                .iter()
                .map(|element| {
                    calls += 1;
                    (calls < 100).then_some(element)
                })
                .collect();
            assert_eq!((stopped.is_none(), calls), (len >= 100, len.min(100)));
        }
    }
}

#[test]
fn collects_of_every_length_and_address() {
    collects::<u8>(U8, &[]);
    if cfg!(miri) {
        return;
    }
    collects::<u16>(U16, &[]);
    collects::<u64>(U64, &[]);
    collects::<f32>(F32, &[]);
    collects::<f64>(F64, &[]);
    collects::<[u8; 3]>(U8, &[3]);
    collects::<[u8; 8]>(U8, &[8]);
    collects::<[u64; 3]>(U64, &[3]);
}

/// Rows of every length, contiguous and with gaps, at addresses that are not aligned to cache lines: read by `fold`, by `next`
/// and by both, and changed.
fn rows_of<T: Plain + PartialEq + core::fmt::Debug>(dtype: DLDataType, number: fn(usize) -> T) {
    let rows = 3;
    for len in lengths().filter(|&len| len < 300 || len == 600) {
        for (first, step) in [(0, 1), (1, 1), (2, 2), (0, 40)] {
            let width = first + len + 1;
            let mut memory: Vec<T> = (0..rows * width * step).map(number).collect();
            let old = memory.clone();
            let place = |row: usize, at: usize| (row * width + first + at) * step;
            let all = import(memory.as_mut_ptr().cast(), dtype, &[rows, width, step], &[]);
            let mut all = ViewMut::<T, [i64; 3]>::new(all).unwrap();
            let mut part = all.slice_mut(1, first..first + len).unwrap();
            let mut part = part.index_mut(2, 0).unwrap();
            let mut count = 0;
            for (row, elements) in part.rows().enumerate() {
                let expected: Vec<T> = (0..len).map(|at| old[place(row, at)]).collect();
                let mut folded = Vec::new();
                elements.iter().for_each(|element| folded.push(element));
                assert_eq!(folded, expected, "row {row} of {len}, {first} {step}");
                let mut iter = elements.iter();
                assert_eq!(iter.len(), len);
                assert_eq!(
                    iter.by_ref().take(5).collect::<Vec<_>>(),
                    expected[..len.min(5)]
                );
                assert_eq!(iter.nth(3).as_ref(), expected.get(8));
                folded.clear();
                iter.for_each(|element| folded.push(element));
                assert_eq!(
                    folded,
                    expected[len.min(9)..],
                    "the rest of row {row} of {len}"
                );
                assert_eq!(elements.iter().nth(len), None);
                count += 1;
            }
            assert_eq!(count, rows);
            let mut seen = Vec::new();
            for mut row in part.rows_mut() {
                row.update(|element| {
                    seen.push(element);
                    number(7)
                });
            }
            drop(all);
            let places = (0..rows).flat_map(|row| (0..len).map(move |at| (row, at)));
            let expected = places.map(|(row, at)| old[place(row, at)]);
            assert!(seen.into_iter().eq(expected), "{len}, {first} {step}");
            for row in 0..rows {
                for at in 0..len {
                    assert_eq!(memory[place(row, at)], number(7), "{row} {at} of {len}");
                    memory[place(row, at)] = old[place(row, at)];
                }
            }
            assert_eq!(memory, old, "between the rows of {len}, {first} {step}");
        }
    }
}

#[test]
fn rows_of_every_length() {
    rows_of::<f32>(F32, |number| number as f32);
    rows_of::<u8>(U8, |number| (number % 251) as u8);
    if cfg!(miri) {
        return;
    }
    rows_of::<u16>(U16, |number| number as u16);
    rows_of::<f64>(F64, |number| number as f64);
    rows_of::<u64>(U64, |number| number as u64 * 0x0101_0000_0203);
}

/// The bytes of `bool`s may have any value.
#[test]
fn collects_of_many_bools() {
    let mut memory = pattern(700);
    let expected: Vec<bool> = memory.iter().map(|&byte| byte != 0).collect();
    let array =
        View::<bool, [i64; 1]>::new(import(memory.as_mut_ptr(), BOOL, &[700], &[])).unwrap();
    assert_eq!(array.iter().collect::<Vec<bool>>(), expected);
    assert_eq!(
        array.iter().map(|flag| !flag).collect::<Vec<bool>>().len(),
        700
    );
    // Results of another size, from several batches.
    let numbers: Vec<u32> = array.iter().map(u32::from).collect();
    assert!(numbers.into_iter().eq(expected.into_iter().map(u32::from)));
    drop(array);
}

/// Memory without other writers has any bytes too: a producer of another library may have written them.
#[test]
fn bools_of_memory_without_writers() {
    let mut memory: Vec<u8> = (0..=255).collect();
    let expected: Vec<bool> = memory.iter().map(|&byte| byte != 0).collect();
    let foreign = Foreign::new(memory.as_mut_ptr(), BOOL, &[16, 16]);
    // SAFETY: a valid tensor; the memory outlives it, and nothing else writes to it.
    let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let mut array = ViewMut::<bool, [i64; 2]>::new(tensor).unwrap();
    let items = |array: &ViewMut<bool, [i64; 2]>| -> Vec<bool> {
        (0..16)
            .flat_map(|row| (0..16).map(move |at| [row, at]))
            .map(|index| array.at(index))
            .collect()
    };
    assert_eq!(items(&array), expected);
    let mut one_by_one = Vec::new();
    for flag in array.iter() {
        one_by_one.push(flag);
    }
    assert_eq!(one_by_one, expected);
    let mut folded = Vec::new();
    array.iter().for_each(|flag| folded.push(flag));
    assert_eq!(folded, expected);
    let pairs = array.zip(&array).unwrap();
    assert!(pairs.map(|(flag, _)| flag).eq(expected.iter().copied()));
    let columns: Vec<bool> = array.transpose().iter().skip(1).collect();
    assert_eq!(columns, [true; 255]);
    array.update(|flag| flag);
    drop(array);
    assert_eq!((memory[0], &memory[1..]), (0, &[1; 255][..]));
}

/// Compares reductions with plain loops, for numbers whose sums are exact.
macro_rules! check_reductions {
    ($array:expr, $other:expr, $number:ident, $sum:ident, $add:expr, $multiply:expr) => {{
        let (array, other) = (&$array, &$other);
        let (mut sum, mut dot) = (0 as $sum, 0 as $sum);
        let (mut least, mut most) = (None::<$number>, None::<$number>);
        for (a, b) in array.iter().zip(other.iter()) {
            sum = $add(sum, a as $sum);
            dot = $add(dot, $multiply(a as $sum, b as $sum));
            least = Some(least.map_or(a, |least| if a < least { a } else { least }));
            most = Some(most.map_or(a, |most| if a > most { a } else { most }));
        }
        assert_eq!(array.sum(), sum, "sum of {array:?}");
        assert_eq!(array.min(), least, "min of {array:?}");
        assert_eq!(array.max(), most, "max of {array:?}");
        assert_eq!(
            array.dot(other).unwrap(),
            dot,
            "dot of {array:?}, {other:?}"
        );
        assert_eq!(
            other.dot(array).unwrap(),
            dot,
            "dot of {other:?}, {array:?}"
        );
    }};
}

macro_rules! reductions {
    ($($number:ident: $code:literal, $sum:ident, $add:expr, $multiply:expr;)*) => {$({
        const SIZE: usize = size_of::<$number>();
        let kind = dtype($code, 8 * SIZE as u8, 1);
        let mut dice = Dice(SIZE as u64);
        // Small numbers, so that sums of floats are exact. Below, one element is larger or smaller than all others.
        const ROOM: usize = if cfg!(miri) { 300 } else { 20_000 };
        let mut memory = vec![0_u8; ROOM * SIZE];
        let mut fill = |skew: usize| {
            for at in (skew..memory.len() - SIZE).step_by(SIZE) {
                let number = if $code == 1 { dice.below(50) as i64 } else { dice.between(-20, 20) };
                memory[at..at + SIZE].copy_from_slice(&(number as $number).to_ne_bytes());
            }
            memory.as_mut_ptr()
        };
        for len in lengths().filter(|len| len % 8 < 2 || cfg!(miri)) {
            for offset in offsets() {
                let data = fill(offset).wrapping_add(offset);
                let of = |data| View::<$number, [i64; 1]>::new(import(data, kind, &[len], &[])).unwrap();
                let array = of(data);
                check_reductions!(array, array, $number, $sum, $add, $multiply);
                check_reductions!(array, of(data.wrapping_add(SIZE)), $number, $sum, $add, $multiply);
                check_reductions!(array, of(data.wrapping_add(16)), $number, $sum, $add, $multiply);
                // The extreme is at any position.
                if len > 0 && !cfg!(miri) {
                    let at = data.cast::<$number>().wrapping_add((offset * 31) % len);
                    for extreme in [$number::MAX, $number::MIN] {
                        // SAFETY: `at` is an element of the array, which is not accessed meanwhile.
                        let old = unsafe { at.read_unaligned() };
                        // SAFETY: `at` is an element of the array, which is not accessed meanwhile.
                        unsafe { at.write_unaligned(extreme) };
                        let found = if extreme > 0 as $number { array.max() } else { array.min() };
                        assert_eq!(found, Some(extreme));
                        // SAFETY: `at` is an element of the array, which is not accessed meanwhile.
                        unsafe { at.write_unaligned(old) };
                    }
                }
            }
        }
        // Other strides of one array and of two.
        for case in 0..if cfg!(miri) { 2 } else { 100 } {
            let data = fill(0);
            let mut dice = Dice(case);
            let shape = core::array::from_fn::<usize, 3, _>(|_| 1 + dice.below(if cfg!(miri) { 4 } else { 25 }));
            let mut draw = || {
                let mut order = [0, 1, 2];
                order.swap(dice.below(3), dice.below(3));
                order.swap(0, dice.below(3));
                let (mut strides, mut step, mut start) = ([0_i64; 3], 1 + dice.below(10) as i64 / 9, 0);
                for axis in order {
                    strides[axis] = step;
                    step *= shape[axis] as i64;
                    if dice.below(4) == 0 {
                        start += strides[axis] * (shape[axis] as i64 - 1);
                        strides[axis] = -strides[axis];
                    }
                }
                let data = data.wrapping_add(start as usize % ROOM * SIZE);
                let shape = shape.map(|extent| extent as i64);
                if step as usize > ROOM {
                    return None;
                }
                let foreign = Foreign::new(data, kind, &shape).strides(&strides);
                // SAFETY: all items lie in the memory, which outlives the tensor.
                let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
                let tensor = if dice.below(2) == 0 { tensor.shared() } else { tensor };
                Some(View::<$number, [i64; 3]>::new(tensor).unwrap())
            };
            if let (Some(array), Some(other)) = (draw(), draw()) {
                check_reductions!(array, other, $number, $sum, $add, $multiply);
            }
        }
    })*};
}

#[test]
fn reductions_are_those_of_plain_loops() {
    let (add, multiply) = (u64::wrapping_add, u64::wrapping_mul);
    let (add_signed, multiply_signed) = (i64::wrapping_add, i64::wrapping_mul);
    reductions! {
        u8: 1, u64, add, multiply;
        f32: 2, f32, |a: f32, b: f32| a + b, |a: f32, b: f32| a * b;
    }
    if cfg!(miri) {
        return;
    }
    reductions! {
        i8: 0, i64, add_signed, multiply_signed;
        u16: 1, u64, add, multiply;
        i16: 0, i64, add_signed, multiply_signed;
        u32: 1, u64, add, multiply;
        i32: 0, i64, add_signed, multiply_signed;
        u64: 1, u64, add, multiply;
        i64: 0, i64, add_signed, multiply_signed;
        f64: 2, f64, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b;
    }
}

#[test]
fn sums_of_many_do_not_overflow_and_lose_few_digits() {
    let len = if cfg!(miri) { 5000 } else { 300_000 };
    let view = |tensor: Managed| tensor.shared();
    let bytes = View::<u8, [i64; 1]>::new(view(vec![255_u8; len].into_dlpack().unwrap())).unwrap();
    assert_eq!(bytes.sum(), 255 * len as u64);
    assert_eq!(bytes.dot(&bytes), Ok(255 * 255 * len as u64));
    let least = View::<i8, [i64; 1]>::new(view(vec![-128_i8; len].into_dlpack().unwrap())).unwrap();
    assert_eq!(least.sum(), -128 * len as i64);
    let words =
        View::<u16, [i64; 1]>::new(view(vec![65_535_u16; len].into_dlpack().unwrap())).unwrap();
    assert_eq!(words.sum(), 65_535 * len as u64);
    let wrapped =
        View::<u64, [i64; 1]>::new(view(vec![u64::MAX, 3].into_dlpack().unwrap())).unwrap();
    assert_eq!(wrapped.sum(), 2);
    let tenths =
        View::<f32, [i64; 1]>::new(view(vec![0.1_f32; len].into_dlpack().unwrap())).unwrap();
    let exact = f64::from(0.1_f32) * len as f64;
    assert!(
        (f64::from(tenths.sum()) / exact - 1.0).abs() < 1e-6,
        "{} of {exact}",
        tenths.sum()
    );
}

/// The result is NaN if any element is; infinities are ordinary numbers.
#[test]
fn extremes_of_nan_and_infinity() {
    for len in [1, 7, 16, 17, 64, 200, 700] {
        for at in (0..len).step_by(if cfg!(miri) { 41 } else { 1 }) {
            let mut numbers = vec![1.0_f32; len];
            numbers[at] = f32::NAN;
            let array = View::<f32, [i64; 1]>::new(numbers.clone().into_dlpack().unwrap()).unwrap();
            assert!(
                array.min().unwrap().is_nan() && array.max().unwrap().is_nan(),
                "{at} of {len}"
            );
            assert!(array.sum().is_nan());
            numbers[at] = f32::NEG_INFINITY;
            let array = View::<f32, [i64; 1]>::new(numbers.clone().into_dlpack().unwrap()).unwrap();
            assert_eq!(array.min(), Some(f32::NEG_INFINITY));
            numbers.fill(f32::INFINITY);
            let array = View::<f32, [i64; 1]>::new(numbers.into_dlpack().unwrap()).unwrap();
            assert_eq!(
                (array.min(), array.max()),
                (Some(f32::INFINITY), Some(f32::INFINITY))
            );
        }
    }
}

#[test]
fn reductions_of_nothing_and_of_other_shapes() {
    let none = View::<f32, [i64; 2]>::new(vec![[0.0_f32; 3]; 0].into_dlpack().unwrap()).unwrap();
    assert_eq!(
        (none.sum(), none.min(), none.max(), none.dot(&none)),
        (0.0, None, None, Ok(0.0))
    );
    let other = View::<f32, [i64; 2]>::new(vec![[0.0_f32; 3]; 2].into_dlpack().unwrap()).unwrap();
    assert!(matches!(
        other.dot(&none),
        Err(Error::Extent { axis: 0, .. })
    ));
    assert!(matches!(
        other.dot(&other.reshape([6]).unwrap()),
        Err(Error::Rank { .. })
    ));
    let repeated = View::<f32, [i64; 1]>::new(vec![2.0_f32].into_dlpack().unwrap()).unwrap();
    assert_eq!(repeated.dot(&repeated), Ok(4.0));
}

/// After a function panics, each element has its old value or the one that the function returned.
#[test]
fn a_panic_leaves_old_or_new_elements() {
    let len = if cfg!(miri) { 60 } else { 300 };
    for offset in [0, 1, 5] {
        for at in (0..len).step_by(if cfg!(miri) { 17 } else { 1 }) {
            let mut memory: Vec<u16> = (0..len as u16 + 5).collect();
            let data = memory.as_mut_ptr().wrapping_add(offset).cast();
            let mut array = ViewMut::<u16, [i64; 1]>::new(import(data, U16, &[len], &[])).unwrap();
            let mut calls = 0;
            let update = AssertUnwindSafe(|| {
                array.update(|element| {
                    assert!(calls < at, "as planned");
                    calls += 1;
                    element + 1000
                });
            });
            catch_unwind(update).unwrap_err();
            drop(array);
            let mut changed = 0;
            for (index, &element) in memory.iter().enumerate() {
                let old = index as u16;
                let is_new = element == old + 1000;
                assert!(element == old || is_new, "{element} at {index}");
                assert!(!is_new || (offset..offset + at).contains(&index));
                changed += usize::from(is_new);
            }
            // All results before the batch of the panic are written.
            assert!(at - changed < 1024, "{changed} of {at}");
        }
    }
}

/// Changes every `step`-th element of rows, from the second on; the elements between them do not change.
fn changes_with_gaps<T: Plain + PartialEq + core::fmt::Debug>(
    dtype: DLDataType,
    number: fn(usize) -> T,
) {
    for (rows, len, step) in [
        (1, 2, 2),
        (1, 40, 3),
        (3, 15, 2),
        (3, 16, 2),
        (2, 17, 3),
        (5, 18, 40),
        (2, 300, 2),
        (2, 300, 70),
    ] {
        let old: Vec<T> = (0..rows * len * step).map(number).collect();
        let places: Vec<usize> = (0..rows)
            .flat_map(|row| (1..len).map(move |at| (row * len + at) * step + step - 1))
            .collect();
        let mut memory = old.clone();
        let all = import(memory.as_mut_ptr().cast(), dtype, &[rows, len, step], &[]);
        let mut all = ViewMut::<T, [i64; 3]>::new(all).unwrap();
        let mut most = all.slice_mut(1, 1..len).unwrap();
        let mut gaps = most.index_mut(2, step - 1).unwrap();
        let mut seen = Vec::new();
        gaps.update(|element| {
            seen.push(element);
            number(7 + seen.len())
        });
        let mut expected = old.clone();
        for (nth, &place) in places.iter().enumerate() {
            assert_eq!(seen[nth], old[place], "{rows} {len} {step}");
            expected[place] = number(8 + nth);
        }
        assert_eq!(seen.len(), places.len());
        assert_eq!(gaps.to_vec().unwrap().len(), places.len());
        gaps.fill(number(3));
        gaps.update(|element| element);
        drop(all);
        for &place in &places {
            assert_eq!(memory[place], number(3), "{rows} {len} {step}");
            memory[place] = expected[place];
        }
        assert_eq!(memory, expected, "{rows} {len} {step}");
    }
}

#[test]
fn changes_of_elements_with_gaps() {
    changes_with_gaps::<u8>(U8, |number| number as u8);
    changes_with_gaps::<u16>(U16, |number| (number as u16).wrapping_mul(259));
    changes_with_gaps::<u64>(U64, |number| number as u64 * 0x0101_0000_0203);
    changes_with_gaps::<f32>(F32, |number| number as f32);
    changes_with_gaps::<f64>(F64, |number| number as f64 / 3.0);
}

/// The bytes of `bool`s may have any value; a function is called with `true` or `false`.
#[test]
fn updates_of_many_bools() {
    let mut memory = pattern(200);
    let old = memory.clone();
    let data = memory.as_mut_ptr();
    let mut array = ViewMut::<bool, [i64; 1]>::new(import(data, BOOL, &[200], &[])).unwrap();
    array.update(|flag| flag);
    drop(array);
    let expected: Vec<u8> = old.iter().map(|&byte| u8::from(byte != 0)).collect();
    assert_eq!(memory, expected);
    // A copy of them has only the bytes 0 and 1.
    let mut bytes = vec![7_u8; 200];
    let from = View::<bool, [i64; 1]>::new(import(bytes.as_mut_ptr(), BOOL, &[200], &[])).unwrap();
    let mut array = ViewMut::<bool, [i64; 1]>::new(import(data, BOOL, &[200], &[])).unwrap();
    array.copy_from(&from).unwrap();
    drop(array);
    assert_eq!(memory, [1; 200]);
}

/// Each element that is copied between overlapping ranges has its old value, or the value that was copied to it.
#[test]
fn copies_between_ranges_that_overlap() {
    let len = if cfg!(miri) { 100 } else { 3000 };
    for distance in [0_usize, 1, 3, 4, 8, 16, 20, 64, 400] {
        for forwards in [true, false] {
            let mut memory: Vec<u32> = (0..(len + distance) as u32).collect();
            let start = memory.as_mut_ptr();
            let [from, to] = if forwards {
                [distance, 0]
            } else {
                [0, distance]
            };
            let copied = to..to + len;
            let [from, to] = [from, to].map(|offset| start.wrapping_add(offset).cast::<u8>());
            let u32s = dtype(1, 32, 1);
            let from = View::<u32, [i64; 1]>::new(import(from, u32s, &[len], &[])).unwrap();
            let mut to = ViewMut::<u32, [i64; 1]>::new(import(to, u32s, &[len], &[])).unwrap();
            to.copy_from(&from).unwrap();
            drop((from, to));
            for (index, &element) in memory.iter().enumerate() {
                let far = if forwards {
                    (element as usize).checked_sub(index)
                } else {
                    index.checked_sub(element as usize)
                };
                let far = far.expect("copied in the other direction");
                let is_copied = if copied.contains(&index) && distance > 0 {
                    far > 0 && far % distance == 0
                } else {
                    far == 0
                };
                assert!(is_copied, "{element} at {index}");
            }
        }
    }
}

/// Arrays without elements, without axes, and with elements of size 0.
#[test]
fn loops_over_nothing() {
    let mut none =
        ViewMut::<f32, [i64; 2]>::new(import(core::ptr::null_mut(), F32, &[0, 3], &[])).unwrap();
    none.update(|_| unreachable!("there is none"));
    none.fill(1.0);
    let other = View::<f32, [i64; 2]>::new(vec![[0.0_f32; 3]; 0].into_dlpack().unwrap()).unwrap();
    none.copy_from(&other).unwrap();
    let mut one = 2.0_f32;
    let data = (&raw mut one).cast();
    let mut array = ViewMut::<f32, [i64; 0]>::new(import(data, F32, &[], &[])).unwrap();
    array.update(|element| element + 1.0);
    drop(array);
    assert_eq!(one, 3.0);
}
