//! Typed arrays: reads, writes and views give the elements that plain arithmetic over indices gives, whatever the strides.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "small numbers, and random ones whose low bits are enough"
)]

mod dice;
mod made;

use dice::Dice;
use dlpack_core::abi::DLDataType;
use dlpack_core::array::{Array, ArrayMut, Part, PartMut, Rank, View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::{DLPack, Error, FromDLPack, Managed};
use made::{BOOL, F32, Foreign, I32, U8, dtype};

static_assertions::assert_impl_all!(View<f32, [i64; 2]>: Send, Sync);
static_assertions::assert_impl_all!(ViewMut<f32, Dims>: Send, Sync);
static_assertions::assert_not_impl_any!(Array<f32, [i64; 2]>: Clone, Copy, Default);

/// Memory and the description of a tensor in it; `places` computes where each index leads by plain arithmetic.
#[derive(Debug)]
struct Case {
    memory: Vec<u8>,
    dtype: DLDataType,
    itemsize: usize,
    shape: Vec<usize>,
    strides: Vec<i64>,
    /// The first byte of the first item.
    start: usize,
    shared: bool,
}

impl Case {
    fn draw(dice: &mut Dice, dtype: DLDataType, trailing: &[usize], repeats: bool) -> Self {
        let itemsize = usize::from(dtype.bits) / 8;
        let rank = dice.below(5);
        let mut shape: Vec<usize> = (0..rank)
            .map(|_| dice.one_of(&[0, 1, 1, 2, 3, 3, 4, 5]))
            .collect();
        if dice.below(4) == 0 && rank > 0 && rank < 3 {
            // Longer than one batch of a read.
            shape[dice.below(rank)] = 600 + dice.below(1000);
        }
        shape.extend(trailing);
        // Contiguous axes in some order, with gaps, some of them reversed.
        let mut order: Vec<usize> = (0..rank).collect();
        if dice.below(2) == 0 {
            order.reverse();
        }
        let mut strides = vec![0_i64; shape.len()];
        let mut step = 1;
        for axis in (rank..shape.len()).rev() {
            strides[axis] = step;
            step *= shape[axis] as i64;
        }
        for &axis in order.iter().rev() {
            strides[axis] = step;
            step *= shape[axis].max(1) as i64 + dice.one_of(&[0, 0, 0, 1, 3]);
            if dice.below(4) == 0 {
                strides[axis] = -strides[axis];
            }
            if repeats && dice.below(8) == 0 {
                strides[axis] = 0;
            }
        }
        let (mut low, mut high) = (0, 0);
        if !shape.contains(&0) {
            for (&extent, &stride) in shape.iter().zip(&strides) {
                let far = (extent as i64 - 1) * stride;
                low += far.min(0);
                high += far.max(0);
            }
        }
        // At any address.
        let skew = dice.one_of(&[0, 0, 1, 8, 61]);
        let start = skew + low.unsigned_abs() as usize * itemsize;
        let memory = (0..start + (high as usize + 1) * itemsize)
            .map(|_| dice.draw() as u8)
            .collect();
        Self {
            memory,
            dtype,
            itemsize,
            shape,
            strides,
            start,
            shared: dice.below(2) == 0,
        }
    }

    fn tensor(&mut self) -> Managed {
        let shape: Vec<i64> = self.shape.iter().map(|&extent| extent as i64).collect();
        let data = self.memory.as_mut_ptr().wrapping_add(self.start);
        let foreign = Foreign::new(data, self.dtype, &shape).strides(&self.strides);
        // SAFETY: all items lie in `self.memory`, which outlives the tensor.
        let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        if self.shared { tensor.shared() } else { tensor }
    }

    /// The byte offset of every item, in row-major order.
    fn places(&self) -> Vec<usize> {
        let axes: Vec<_> = self
            .shape
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .collect();
        places(self.start, self.itemsize, &axes)
    }

    fn bytes_at(&self, places: &[usize]) -> Vec<u8> {
        places
            .iter()
            .flat_map(|&place| &self.memory[place..place + self.itemsize])
            .copied()
            .collect()
    }
}

fn places(start: usize, itemsize: usize, axes: &[(usize, i64)]) -> Vec<usize> {
    let mut places = vec![start as i64];
    for &(extent, stride) in axes {
        places = places
            .iter()
            .flat_map(|place| {
                (0..extent as i64).map(move |index| place + index * stride * itemsize as i64)
            })
            .collect();
    }
    places
        .into_iter()
        .map(|place| usize::try_from(place).unwrap())
        .collect()
}

/// Strides without gaps, with the axes in any order and direction, except that the last `trailing` axes are those of an element.
/// Also returns the index of the item whose indices are all zero, and the number of items.
fn packed_in_some_order(
    dice: &mut Dice,
    shape: &[usize],
    trailing: usize,
) -> (Vec<i64>, usize, usize) {
    let mut order: Vec<usize> = (0..shape.len() - trailing).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, dice.below(last + 1));
    }
    order.splice(0..0, shape.len() - trailing..shape.len());
    order[..trailing].reverse();
    let (mut strides, mut start, mut len) = (vec![0; shape.len()], 0, 1);
    for (position, axis) in order.into_iter().enumerate() {
        strides[axis] = len as i64;
        if position >= trailing && dice.below(4) == 0 {
            strides[axis] = -strides[axis];
            start += shape[axis].saturating_sub(1) * len;
        }
        len *= shape[axis];
    }
    (strides, if len == 0 { 0 } else { start }, len)
}

/// The bytes of the elements.
fn bytes<T: Plain>(elements: &[T]) -> Vec<u8> {
    // SAFETY: a `Plain` type is initialised memory without padding.
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }
        .to_vec()
}

/// Asserts that an array has these elements, by each method that reads them.
fn same<T: Plain + PartialEq + core::fmt::Debug, L: Rank>(array: &Array<T, L>, expected: &[u8]) {
    assert_eq!(array.len() * size_of::<T>(), expected.len());
    let elements = array.to_vec().unwrap();
    assert_eq!(bytes(&elements), expected);
    assert_eq!(bytes(&array.iter().collect::<Vec<_>>()), expected);
    assert_eq!(array.iter().len(), elements.len());
    // By `collect` of items and of results, from the start and from the middle, and by `next`.
    let mut calls = 0;
    let counted = array.iter().map(|element| {
        calls += 1;
        (calls - 1, element)
    });
    let counted: Vec<(usize, T)> = counted.collect();
    assert!(counted.iter().map(|&(call, _)| call).eq(0..elements.len()));
    assert!(
        counted
            .iter()
            .map(|&(_, element)| element)
            .eq(elements.iter().copied())
    );
    let mut items = array.iter();
    for skipped in [1, 2, 61] {
        items.nth(skipped - 1);
    }
    let rest: Vec<T> = items.clone().collect();
    assert!(rest.iter().copied().eq(elements.iter().copied().skip(64)));
    assert!(
        items
            .clone()
            .map(|element| element)
            .eq(elements.iter().copied().skip(64))
    );
    let mut folded = Vec::new();
    items
        .map(|element| element)
        .for_each(|element| folded.push(element));
    assert_eq!(folded, rest);
    // By folds, from the start and from the middle.
    let mut folded = Vec::new();
    array.iter().for_each(|element| folded.push(element));
    assert_eq!(bytes(&folded), expected);
    let mut items = array.iter();
    let mut first: Vec<T> = items.by_ref().take(elements.len() / 3).collect();
    items.for_each(|element| first.push(element));
    assert_eq!(bytes(&first), expected);
    let mut copies = elements.clone();
    copies.reverse();
    array.copy_to_slice(&mut copies).unwrap();
    assert_eq!(bytes(&copies), expected);
    let rows: Vec<T> = array
        .rows()
        .flat_map(|row| row.iter().collect::<Vec<_>>())
        .collect();
    assert_eq!(bytes(&rows), expected);
    if let Ok(slice) = array.as_slice() {
        assert_eq!(bytes(slice), expected);
    }
    let mut visited = Vec::new();
    for element in array {
        visited.push(element);
    }
    assert_eq!(bytes(&visited), expected);
}

fn reads<T: Plain + PartialEq + core::fmt::Debug>(
    dice: &mut Dice,
    dtype: DLDataType,
    trailing: &[usize],
) {
    let mut case = Case::draw(dice, dtype, trailing, true);
    let expected = case.bytes_at(&case.places());
    let tensor = case.tensor();
    let array = View::<T, Dims>::new(tensor).unwrap();
    same(&array, &expected);
    let rank = array.rank();
    let axes: Vec<(usize, i64)> = case
        .shape
        .iter()
        .copied()
        .zip(case.strides.iter().copied())
        .collect();
    let (leading, tail) = axes.split_at(rank);
    let at = |start: usize, leading: &[(usize, i64)]| {
        let axes: Vec<_> = leading.iter().chain(tail).copied().collect();
        case.bytes_at(&places(start, case.itemsize, &axes))
    };
    let step = |axis: usize, index: usize| {
        let far = leading[axis].1 * index as i64 * case.itemsize as i64;
        usize::try_from(case.start as i64 + far).unwrap()
    };
    same(
        &array.transpose(),
        &at(
            case.start,
            &leading.iter().rev().copied().collect::<Vec<_>>(),
        ),
    );
    for axis in 0..rank {
        let extent = leading[axis].0;
        // Indices outside of the axis.
        assert!(array.index(axis, extent).is_err());
        assert!(array.slice(axis, 0..extent + 1).is_err());
        let (from, to) = (dice.below(extent + 1), dice.below(extent + 1));
        if from > to {
            assert!(array.slice(axis, from..to).is_err());
            continue;
        }
        let mut part = leading.to_vec();
        part[axis].0 = to - from;
        let start = if from < to && !case.shape.contains(&0) {
            step(axis, from)
        } else {
            case.start
        };
        same(&array.slice(axis, from..to).unwrap(), &at(start, &part));
        part.remove(axis);
        if from < extent && !case.shape.contains(&0) {
            same(
                &array.index(axis, from).unwrap(),
                &at(step(axis, from), &part),
            );
        }
        assert_eq!(array.axis(axis).unwrap().len(), extent);
        let of_axis: usize = array
            .axis(axis)
            .unwrap()
            .map(|part: Part<'_, T, Dims>| part.len())
            .sum();
        assert_eq!(of_axis, array.len());
    }
    assert!(array.index(rank, 0).is_err() && array.axis(rank).is_err());
    // Single elements.
    let index: Vec<usize> = leading
        .iter()
        .map(|&(extent, _)| dice.below(extent + 1))
        .collect();
    let inside = index
        .iter()
        .zip(leading)
        .all(|(&index, &(extent, _))| index < extent);
    let far = index
        .iter()
        .zip(leading)
        .map(|(&index, &(_, stride))| index as i64 * stride * case.itemsize as i64);
    match array.get(&index[..]) {
        Some(element) => {
            assert!(inside);
            let start = usize::try_from(case.start as i64 + far.sum::<i64>()).unwrap();
            assert_eq!(bytes(&[element]), at(start, &[]));
        }
        None => assert!(!inside),
    }
    assert!(array.get(&vec![0; rank + 1][..]).is_none());
    // A reshape has the same elements, or is refused.
    let len = array.len();
    for (rows, columns) in [(len, 1), (1, len), (2, len / 2), (len / 3, 3)] {
        if rows * columns == len {
            if let Ok(part) = array.reshape([rows, columns]) {
                same(&part, &expected);
            } else {
                assert!(!array.is_contiguous());
            }
        }
    }
    assert!(matches!(array.reshape([len + 1]), Err(Error::Count { .. })));
}

fn writes<T: Plain + PartialEq + core::fmt::Debug>(
    dice: &mut Dice,
    dtype: DLDataType,
    trailing: &[usize],
    value: fn(u64) -> T,
) {
    let mut case = Case::draw(dice, dtype, trailing, false);
    let before = case.memory.clone();
    let places = case.places();
    let tensor = case.tensor();
    let Ok(mut array) = ViewMut::<T, Dims>::new(tensor) else {
        // Axes that interleave without overlap are refused like axes that overlap.
        return;
    };
    let len = array.len();
    let mut expected = before.clone();
    let mut put = |elements: &[T]| {
        for (place, byte) in places.iter().zip(bytes(elements).chunks(case.itemsize)) {
            expected[*place..place + case.itemsize].copy_from_slice(byte);
        }
        expected.clone()
    };
    let elements: Vec<T> = (0..len).map(|_| value(dice.draw())).collect();
    let mut other = Vec::new();
    let expected = match dice.below(7) {
        0 => {
            array.copy_from_slice(&elements).unwrap();
            assert!(matches!(
                array.copy_from_slice(&vec![value(0); len + 1]),
                Err(Error::Count { .. })
            ));
            put(&elements)
        }
        1 => {
            let one = value(dice.draw());
            array.fill(one);
            put(&vec![one; len])
        }
        2 => {
            let mut next = elements.iter();
            let mut old = Vec::new();
            array.update_in_order(|element| {
                old.push(element);
                *next.next().unwrap()
            });
            let found: Vec<u8> = places
                .iter()
                .flat_map(|&place| &before[place..place + case.itemsize])
                .copied()
                .collect();
            assert_eq!(bytes(&old), found);
            put(&elements)
        }
        3 => {
            // From an array with other strides.
            let shape: Vec<i64> = case.shape.iter().map(|&extent| extent as i64).collect();
            let (strides, start, len) = packed_in_some_order(dice, &case.shape, trailing.len());
            other = vec![0; (len + 1) * case.itemsize];
            let axes: Vec<_> = case.shape.iter().copied().zip(strides.clone()).collect();
            let items = bytes(&elements);
            for (place, item) in crate::places(start * case.itemsize, case.itemsize, &axes)
                .into_iter()
                .zip(items.chunks(case.itemsize))
            {
                other[place..place + case.itemsize].copy_from_slice(item);
            }
            let data = other.as_mut_ptr().wrapping_add(start * case.itemsize);
            let foreign = Foreign::new(data, dtype, &shape).strides(&strides);
            // SAFETY: all items lie in `other`, which outlives the tensor.
            let from = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
            array
                .copy_from(&View::<T, Dims>::new(from).unwrap())
                .unwrap();
            put(&elements)
        }
        4 => {
            // In any order, but each element once.
            let (old, mut calls) = (array.to_vec().unwrap(), 0);
            let change = |element: T| {
                let number = bytes(&[element])
                    .iter()
                    .fold(7, |sum, &byte| 31 * sum + u64::from(byte));
                value(number)
            };
            array.update(|element| {
                calls += 1;
                change(element)
            });
            assert_eq!(calls, len);
            put(&old.into_iter().map(change).collect::<Vec<_>>())
        }
        5 => {
            let mut next = elements.iter();
            for mut row in array.rows_mut() {
                let len = row.len();
                let elements: Vec<T> = next.by_ref().take(len).copied().collect();
                let row: &mut PartMut<'_, T, [i64; 1]> = &mut row;
                row.copy_from_slice(&elements).unwrap();
            }
            put(&elements)
        }
        _ => {
            if let Ok(slice) = array.as_mut_slice() {
                slice.copy_from_slice(&elements);
                put(&elements)
            } else {
                before
            }
        }
    };
    drop(array);
    drop(other);
    // No other byte has changed.
    assert_eq!(case.memory, expected);
}

fn cases() -> u64 {
    std::env::var("DLPACK_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(4000)
}

#[test]
fn reads_agree_with_an_index_walk() {
    for seed in 0..cases() {
        let dice = &mut Dice(seed);
        match seed % 6 {
            0 => reads::<u8>(dice, U8, &[]),
            1 => reads::<i32>(dice, I32, &[]),
            2 => reads::<u64>(dice, dtype(1, 64, 1), &[]),
            3 => reads::<[u8; 3]>(dice, U8, &[3]),
            4 => reads::<u16>(dice, dtype(1, 16, 1), &[]),
            _ => reads::<[[u32; 2]; 3]>(dice, dtype(1, 32, 1), &[3, 2]),
        }
    }
}

#[test]
fn writes_agree_with_an_index_walk() {
    for seed in 0..cases() {
        let dice = &mut Dice(seed);
        match seed % 5 {
            0 => writes::<u8>(dice, U8, &[], |bits| bits as u8),
            1 => writes::<i32>(dice, I32, &[], |bits| bits as i32),
            2 => writes::<u64>(dice, dtype(1, 64, 1), &[], |bits| bits),
            3 => writes::<[u8; 3]>(dice, U8, &[3], |bits| [bits as u8, 1, 2]),
            _ => writes::<u16>(dice, dtype(1, 16, 1), &[], |bits| bits as u16),
        }
    }
}

fn foreign<T>(memory: &mut [T], dtype: DLDataType, shape: &[i64]) -> Foreign {
    Foreign::new(memory.as_mut_ptr().cast(), dtype, shape)
}

fn import(foreign: &Foreign) -> Managed {
    // SAFETY: a valid tensor, whose memory outlives it.
    unsafe { Managed::from_raw(foreign.versioned()) }.unwrap()
}

#[test]
fn a_tensor_that_does_not_fit_is_returned_with_the_error() {
    let mut memory = [0.0_f32; 6];
    let tensor = foreign(&mut memory, F32, &[2, 3]);
    let deleted = tensor.deleted.clone();
    let (error, tensor) = View::<f32, [i64; 1]>::try_new(import(&tensor)).unwrap_err();
    assert_eq!(
        error,
        Error::Rank {
            found: 2,
            needed: 1
        }
    );
    let (error, tensor) = View::<f64, [i64; 2]>::try_new(tensor).unwrap_err();
    assert!(matches!(error, Error::WrongDataType { .. }));
    let (error, tensor) = View::<[f32; 2], [i64; 1]>::try_new(tensor).unwrap_err();
    assert!(matches!(
        error,
        Error::Extent {
            axis: 1,
            found: 3,
            ..
        }
    ));
    assert_eq!(deleted.times(), 0);
    assert_eq!(
        View::<[f32; 3], [i64; 1]>::new(tensor).unwrap().shape(),
        [2]
    );
    assert_eq!(deleted.times(), 1);
}

#[test]
fn an_array_of_any_rank_returns_its_lists() {
    let mut memory = [0_u8; 24];
    let wide = foreign(&mut memory, U8, &[2, 3]).strides(&[12, -4]);
    let mut wide = wide;
    wide.data = wide.data.wrapping_add(8);
    let view = View::<u8, Dims>::new(import(&wide)).unwrap();
    assert_eq!((view.shape(), view.strides()), (&[2, 3][..], &[12, -4][..]));
}

#[test]
fn an_element_that_is_set_is_read_again() {
    let mut own =
        ViewMut::<u16, [i64; 2]>::new([[1_u16, 2], [3, 4]].into_dlpack().unwrap()).unwrap();
    own.set([1, 0], 30);
    assert_eq!(own.to_vec().unwrap(), [1, 2, 30, 4]);
    let shared = [[0.5_f64, 1.5], [2.5, 3.5]].into_dlpack().unwrap().shared();
    let mut shared = ViewMut::<f64, Dims>::new(shared).unwrap();
    shared.set([0, 1], -1.0);
    assert_eq!(shared.to_vec().unwrap(), [0.5, -1.0, 2.5, 3.5]);
    let mut pairs =
        ViewMut::<[u8; 3], [i64; 1]>::new([[1_u8, 2, 3], [4, 5, 6]].into_dlpack().unwrap())
            .unwrap();
    pairs.set([1], [7, 8, 9]);
    assert_eq!(pairs.to_vec().unwrap(), [[1, 2, 3], [7, 8, 9]]);
}

#[test]
fn a_view_fits_what_it_can_be_made_of() {
    let floats = [1.0_f32, 2.0].into_dlpack().unwrap();
    let numbers = [1_i32, 2].into_dlpack().unwrap();
    assert!(View::<f32, [i64; 1]>::fits(&floats.view()));
    assert!(!View::<f32, [i64; 1]>::fits(&numbers.view()));
    assert!(!View::<f32, [i64; 2]>::fits(&floats.view()));
    assert!(ViewMut::<f32, [i64; 1]>::fits(&floats.view()));
    assert!(!ViewMut::<f32, [i64; 1]>::fits(&numbers.view()));
    assert!(!ViewMut::<f32, [i64; 2]>::fits(&floats.view()));
}

#[test]
fn a_view_prints_what_it_is() {
    let print = |text: String| text.split(' ').next().unwrap_or_default().to_owned();
    let array = || [1_u8, 2].into_dlpack().unwrap();
    let view = View::<u8, [i64; 1]>::new(array()).unwrap();
    assert_eq!(print(format!("{view:?}")), "View(Array");
    let items = view.iter().map(|byte| byte);
    assert_eq!(print(format!("{items:?}")), "Mapped");
    let view = ViewMut::<u8, [i64; 1]>::new(array()).unwrap();
    assert_eq!(print(format!("{view:?}")), "ViewMut(Array");
    let owned = View::<u8, [i64; 1]>::new(array()).unwrap().into_slice();
    assert_eq!(format!("{:?}", owned.unwrap()), "[1, 2]");
}

/// An element has no gaps, but there may be some between elements.
#[test]
fn gaps_in_an_element_are_refused() {
    let mut memory = [0_u8; 24];
    let wide = foreign(&mut memory, U8, &[2, 3]).strides(&[12, 1]);
    assert!(View::<[u8; 3], [i64; 1]>::new(import(&wide)).is_ok());
    let gaps = foreign(&mut memory, U8, &[2, 3]).strides(&[12, 2]);
    assert!(matches!(
        View::<[u8; 3], [i64; 1]>::new(import(&gaps)),
        Err(Error::NotContiguous { .. })
    ));
}

#[test]
fn read_only_and_overlapping_tensors_are_not_writable() {
    let mut memory = [0.0_f32; 6];
    let mut readonly = foreign(&mut memory, F32, &[6]);
    readonly.flags = 1;
    assert!(matches!(
        ViewMut::<f32, [i64; 1]>::new(import(&readonly)),
        Err(Error::ReadOnly)
    ));
    let overlap = foreign(&mut memory, F32, &[2, 3]).strides(&[1, 1]);
    assert!(View::<f32, [i64; 2]>::new(import(&overlap)).is_ok());
    assert!(matches!(
        ViewMut::<f32, [i64; 2]>::new(import(&overlap)),
        Err(Error::Overlap { .. })
    ));
    // The stride of an axis of size 1 is never applied, so it cannot cause an overlap.
    let one = foreign(&mut memory, F32, &[1, 6]).strides(&[0, 1]);
    assert!(ViewMut::<f32, [i64; 2]>::new(import(&one)).is_ok());
}

/// Any byte but 0 is read as `true`.
#[test]
fn any_byte_but_zero_is_true() {
    let mut memory = [0_u8, 1, 2, 255, 0];
    let tensor = foreign(&mut memory, BOOL, &[5]);
    let flags = View::<bool, [i64; 1]>::new(import(&tensor).shared()).unwrap();
    let expected = [false, true, true, true, false];
    assert_eq!(flags.to_vec().unwrap(), expected);
    assert!(flags.iter().eq(expected));
    assert!(flags.at([3]));
    // SAFETY: no other code writes the memory.
    let slice = unsafe { flags.as_slice_unchecked() };
    assert!(matches!(slice, Err(Error::NotBool { found: 2 })));
    drop(flags);
    let mut flags = ViewMut::<bool, [i64; 1]>::new(import(&tensor).shared()).unwrap();
    flags.update(|flag| !flag);
    drop(flags);
    assert_eq!(memory, [1, 0, 0, 0, 1]);
}

#[test]
fn slices_need_memory_that_is_not_shared() {
    let mut array =
        ViewMut::<f32, [i64; 2]>::new(vec![[1.0_f32; 3]; 2].into_dlpack().unwrap()).unwrap();
    array.as_mut_slice().unwrap()[5] = 2.0;
    assert_eq!(array.as_slice().unwrap(), [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
    let mut rows = array.rows_mut();
    let (mut first, mut second) = (rows.next().unwrap(), rows.next().unwrap());
    core::mem::swap(
        &mut first.as_mut_slice().unwrap()[0],
        &mut second.as_mut_slice().unwrap()[2],
    );
    drop(rows);
    assert_eq!(array.to_vec().unwrap(), [2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let shared = ViewMut::<f32, [i64; 1]>::new(vec![0.0_f32].into_dlpack().unwrap().shared());
    let mut shared = shared.unwrap();
    assert_eq!(shared.as_mut_slice(), Err(Error::MayChange));
    // SAFETY: no other code has the tensor.
    let mut part = unsafe { shared.unshared_mut() };
    part.as_mut_slice().unwrap()[0] = 3.0;
    assert_eq!(shared.at([0]), 3.0);
}

/// Every view of shared memory is shared: no method that selects elements allows a plain slice of it.
#[test]
fn views_of_shared_memory_are_shared() {
    let tensor = || vec![[1.0_f32; 3]; 2].into_dlpack().unwrap();
    let is_shared = |array: &Array<f32, [i64; 1]>| {
        assert_eq!(array.len(), 3);
        array.as_slice() == Err(Error::MayChange)
    };
    for shared in [true, false] {
        let tensor = || match shared {
            true => tensor().shared(),
            false => tensor(),
        };
        let array = View::<f32, [i64; 2]>::new(tensor()).unwrap();
        assert_eq!(is_shared(&array.index(0, 1).unwrap()), shared);
        assert!(array.rows().all(|row| is_shared(&row) == shared));
        assert_eq!(
            is_shared(&array.reshape([6]).unwrap().slice(0, 1..4).unwrap()),
            shared
        );
        let may_change = |array: &Array<f32, [i64; 2]>| array.as_slice() == Err(Error::MayChange);
        assert_eq!(may_change(&array.slice(0, 1..2).unwrap()), shared);
        assert_eq!(may_change(&array.permute(&[0, 1]).unwrap()), shared);
        // Two transpositions restore the order, so that only sharing prevents a slice.
        assert_eq!(may_change(&array.transpose().transpose()), shared);

        let mut array = ViewMut::<f32, [i64; 2]>::new(tensor()).unwrap();
        let is_shared =
            |part: &mut ArrayMut<f32, [i64; 1]>| part.as_mut_slice() == Err(Error::MayChange);
        assert!(
            array
                .rows_mut()
                .all(|mut row| is_shared(&mut row) == shared)
        );
        assert_eq!(is_shared(&mut array.index_mut(0, 1).unwrap()), shared);
        let may_change =
            |part: &mut ArrayMut<f32, [i64; 2]>| part.as_mut_slice() == Err(Error::MayChange);
        assert_eq!(may_change(&mut array.slice_mut(0, 1..2).unwrap()), shared);
        assert_eq!(may_change(&mut array.permute_mut(&[0, 1]).unwrap()), shared);
    }
}

/// NumPy gives an axis of size 1 any stride; no read uses it.
#[test]
fn strides_of_axes_of_one_element_do_not_matter() {
    let mut memory = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (shape, strides) in [
        ([1, 2, 3], [99, 3, 1]),
        ([2, 1, 3], [3, -7, 1]),
        ([2, 3, 1], [3, 1, 5]),
    ] {
        let tensor = foreign(&mut memory, F32, &shape).strides(&strides);
        let array = View::<f32, [i64; 3]>::new(import(&tensor)).unwrap();
        assert!(array.is_contiguous(), "{shape:?} {strides:?}");
        assert_eq!(array.as_slice().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let points = View::<[f32; 1], [i64; 2]>::new(import(
            &foreign(&mut memory, F32, &[2, 3, 1]).strides(&[3, 1, 5]),
        ));
        assert!(points.is_ok_and(|points| points.is_contiguous()));
    }
    let gaps = foreign(&mut memory, F32, &[2, 1]).strides(&[3, 1]);
    let array = View::<f32, [i64; 2]>::new(import(&gaps)).unwrap();
    assert!(!array.is_contiguous());
}

/// An index removes its own axis and no other, for every number of axes.
#[test]
fn an_index_leaves_the_other_axes() {
    fn check<const N: usize, const LESS: usize>()
    where
        [i64; N]: Rank<Less = [i64; LESS]>,
        [i64; LESS]: Rank,
    {
        let shape: [i64; N] = core::array::from_fn(|axis| axis as i64 + 1);
        let count: i64 = shape.iter().product();
        let mut memory: Vec<i32> = (0..count as i32).collect();
        let tensor = foreign(&mut memory, I32, &shape);
        let array = View::<i32, [i64; N]>::new(import(&tensor)).unwrap();
        for axis in 0..N {
            let rest: Vec<usize> = (0..N).filter(|other| *other != axis).collect();
            let part = array.index(axis, axis).unwrap();
            assert_eq!(
                part.shape().to_vec(),
                rest.iter().map(|&axis| axis + 1).collect::<Vec<_>>()
            );
            let strides = array.strides();
            assert_eq!(
                part.strides().to_vec(),
                rest.iter().map(|&axis| strides[axis]).collect::<Vec<_>>()
            );
            assert_eq!(part.at([0; LESS]) as isize, axis as isize * strides[axis]);
        }
    }
    check::<1, 0>();
    check::<2, 1>();
    check::<3, 2>();
    check::<4, 3>();
    check::<5, 4>();
    check::<6, 5>();
    check::<7, 6>();
    check::<8, 7>();
}

#[test]
#[should_panic(expected = "index [2, 0] of an array of shape [2, 3]")]
fn an_index_out_of_bounds_panics() {
    let array = View::<u8, [i64; 2]>::new(vec![[0_u8; 3]; 2].into_dlpack().unwrap()).unwrap();
    let _ = array.at([2, 0]);
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_have_the_same_elements() {
    for seed in 0..cases() / 4 {
        let mut case = Case::draw(&mut Dice(seed), dtype(1, 16, 1), &[], true);
        case.shared = false;
        let expected = case.bytes_at(&case.places());
        let array = View::<u16, Dims>::new(case.tensor()).unwrap();
        match array.as_ndarray() {
            Ok(view) => {
                assert_eq!(view.shape(), case.shape);
                assert_eq!(bytes(&view.iter().copied().collect::<Vec<_>>()), expected);
            }
            Err(error) => assert!(matches!(error, Error::Misaligned { .. }), "{error}"),
        }
    }
    // No array whose size ndarray would count as more than the address space.
    let huge = foreign(&mut [0_u8; 1], U8, &[0, 1 << 40, 1 << 40]);
    let huge = View::<u8, [i64; 3]>::new(import(&huge)).unwrap();
    assert!(matches!(huge.as_ndarray(), Err(Error::TooLarge { .. })));
    assert!(huge.to_vec().unwrap().is_empty() && huge.transpose().iter().next().is_none());
    let shared = View::<u8, [i64; 1]>::new(vec![0_u8].into_dlpack().unwrap().shared()).unwrap();
    assert_eq!(shared.as_ndarray().unwrap_err(), Error::MayChange);
}

/// A view of a reversed axis begins at its last element, also one that writes.
#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_that_write_reverse_the_reversed_axes() {
    let mut memory = [1_u16, 2, 3, 4, 5, 6];
    let mut reversed = Foreign::new(
        memory.as_mut_ptr().wrapping_add(3).cast(),
        dtype(1, 16, 1),
        &[2, 3],
    );
    reversed = reversed.strides(&[-3, 1]);
    let mut array = ViewMut::<u16, [i64; 2]>::new(import(&reversed)).unwrap();
    let mut view = array.as_ndarray_mut().unwrap();
    assert!(view.iter().eq(&[4, 5, 6, 1, 2, 3]));
    view[[0, 1]] = 50;
    view[[1, 2]] = 30;
    drop(array);
    assert_eq!(memory, [1, 2, 30, 4, 50, 6]);
}

#[cfg(feature = "nalgebra")]
#[test]
fn nalgebra_views_have_the_same_elements() {
    for seed in 0..cases() / 4 {
        let mut case = Case::draw(&mut Dice(seed), dtype(1, 16, 1), &[], true);
        case.shared = false;
        let expected = case.bytes_at(&case.places());
        let Ok(array) = View::<u16, [i64; 2]>::new(case.tensor()) else {
            continue;
        };
        match array.as_matrix() {
            Ok(view) => {
                assert_eq!(view.shape(), array.shape().into());
                let rows = view.transpose();
                assert_eq!(bytes(&rows.iter().copied().collect::<Vec<_>>()), expected);
                let by_column = array.transpose().to_vec().unwrap();
                assert!(view.iter().eq(&by_column), "seed {seed}");
            }
            Err(Error::NotContiguous { .. }) => {
                assert!(case.strides[0] == 0 || case.strides.iter().any(|&stride| stride < 0))
            }
            Err(error) => assert!(matches!(error, Error::Misaligned { .. }), "{error}"),
        }
    }
}

/// The address of an empty array need not be aligned, because no element is read.
#[test]
fn an_empty_array_at_any_address_is_an_empty_slice() {
    let mut memory = [0_u8; 2];
    let data = memory
        .as_mut_ptr()
        .wrapping_add(1 - memory.as_ptr().addr() % 2);
    let empty = Foreign::new(data, dtype(1, 16, 1), &[0]);
    let view = View::<u16, [i64; 1]>::new(import(&empty)).unwrap();
    assert!(view.as_slice().unwrap().is_empty());
}

/// Elements without size take no memory, but a slice of them has as many as the array.
#[test]
fn a_slice_has_as_many_elements_without_size_as_the_array() {
    let tensor = import(&Foreign::new(
        core::ptr::null_mut(),
        dtype(1, 32, 1),
        &[2, 3, 0],
    ));
    let mut array = ViewMut::<[u32; 0], [i64; 2]>::new(tensor).unwrap();
    assert_eq!(array.len(), 6);
    assert_eq!(array.to_vec().unwrap(), [[0; 0]; 6]);
    assert_eq!(array.as_slice().unwrap(), [[0; 0]; 6]);
    assert_eq!(array.as_mut_slice().unwrap(), [[0; 0]; 6]);
    let view = View::<[u32; 0], [i64; 2]>::new(array.into_managed()).unwrap();
    assert_eq!(view.into_slice().unwrap()[..], [[0; 0]; 6]);
}

/// A tensor over `memory`, as NumPy exports `x[None]` and `numpy.broadcast_to`: with these strides.
#[cfg(feature = "nalgebra")]
fn with_strides(memory: &mut [u16], shape: &[i64], strides: &[i64]) -> Managed {
    let data = memory.as_mut_ptr().cast();
    let foreign = Foreign::new(data, dtype(1, 16, 1), shape).strides(strides);
    import(&foreign)
}

/// The stride of an axis of one element is never applied, whatever it is: iterators of `nalgebra` stay inside the matrix.
#[cfg(feature = "nalgebra")]
#[test]
fn nalgebra_ignores_strides_of_axes_of_one_element() {
    for stride in [0, 1, 3, -1, -3, i64::MIN] {
        // The values after the elements must be neither read nor written.
        let mut memory = [1_u16, 2, 3, 90, 91, 92, 93];
        let mut row = with_strides(&mut memory, &[1, 3], &[stride, 1]);
        let view = View::<u16, [i64; 2]>::new(row).unwrap();
        assert!(view.as_matrix().unwrap().iter().eq(&[1, 2, 3]), "{stride}");
        row = with_strides(&mut memory, &[1, 3], &[stride, 1]);
        let mut view = ViewMut::<u16, [i64; 2]>::new(row).unwrap();
        view.as_matrix_mut()
            .unwrap()
            .iter_mut()
            .for_each(|item| *item += 10);
        let column = with_strides(&mut memory, &[3, 1], &[1, stride]);
        let view = View::<u16, [i64; 2]>::new(column).unwrap();
        assert!(
            view.as_matrix().unwrap().iter().eq(&[11, 12, 13]),
            "{stride}"
        );
        let one = with_strides(&mut memory, &[1], &[stride]);
        let view = View::<u16, [i64; 1]>::new(one).unwrap();
        assert!(view.as_vector().unwrap().iter().eq(&[11]), "{stride}");
        assert_eq!(memory, [11, 12, 13, 90, 91, 92, 93]);
    }
}

/// Iterators of `nalgebra` would leave a matrix whose rows are all the same memory, so it is refused. They stay inside one whose
/// columns are all the same memory.
#[cfg(feature = "nalgebra")]
#[test]
fn a_matrix_of_equal_rows_is_not_lent_to_nalgebra() {
    let mut memory = [1_u16, 2, 3, 90, 91, 92];
    let rows = with_strides(&mut memory, &[2, 3], &[0, 1]);
    let view = View::<u16, [i64; 2]>::new(rows).unwrap();
    assert!(matches!(view.as_matrix(), Err(Error::NotContiguous { .. })));
    let columns = with_strides(&mut memory, &[3, 2], &[1, 0]);
    let view = View::<u16, [i64; 2]>::new(columns).unwrap();
    assert!(view.as_matrix().unwrap().iter().eq(&[1, 2, 3, 1, 2, 3]));
    let equal = with_strides(&mut memory, &[3], &[0]);
    let view = View::<u16, [i64; 1]>::new(equal).unwrap();
    assert!(matches!(view.as_vector(), Err(Error::NotContiguous { .. })));
}
