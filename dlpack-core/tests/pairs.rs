//! Loops over two arrays at once, broadcast arrays, and loops over references to views.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "small numbers, and random ones whose low bits are enough"
)]

mod dice;
mod made;

use dice::Dice;
use dlpack_core::array::{Array, Rank, View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::{DLPack, Error, Managed, Record};
use made::{Foreign, dtype};

/// Memory with small numbers in every item.
fn memory() -> Vec<u8> {
    (0..if cfg!(miri) { 1 << 15 } else { 1 << 16 })
        .map(|index| (index * 37 / 8) as u8 % 100)
        .collect()
}

/// A view of this shape with random strides: positive, negative, with gaps, zero, in any order of the axes.
fn draw<T: Plain>(dice: &mut Dice, memory: &mut [u8], shape: &[usize]) -> View<T, Dims> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, dice.below(last + 1));
    }
    let (mut strides, mut step, mut start) = (vec![0_i64; shape.len()], 1, 0);
    for axis in order {
        strides[axis] = step;
        step *= shape[axis].max(1) as i64 + dice.one_of(&[0, 0, 1, 5]);
        match dice.below(8) {
            0 => strides[axis] = 0,
            1 | 2 => {
                start += strides[axis] * (shape[axis].max(1) as i64 - 1);
                strides[axis] = -strides[axis];
            }
            _ => {}
        }
    }
    let skew = dice.one_of(&[0, 1, 16]);
    assert!(
        skew + step as usize * size_of::<T>() < memory.len(),
        "inside"
    );
    let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    let kind = dtype(T::DTYPE.code(), T::DTYPE.bits(), 1);
    let data = (memory.as_mut_ptr()).wrapping_add(skew + start as usize * size_of::<T>());
    let foreign = Foreign::new(data, kind, &shape).strides(&strides);
    // SAFETY: all items lie in `memory`, which outlives the view.
    let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let tensor = if dice.below(2) == 0 {
        tensor.shared()
    } else {
        tensor
    };
    View::new(tensor).unwrap()
}

/// Compares the pairs of two random arrays with those of an index walk, by each way of iterating.
fn check_pairs<T: Plain + PartialEq + core::fmt::Debug, U: Plain + PartialEq + core::fmt::Debug>(
    dice: &mut Dice,
) {
    let rank = dice.below(4);
    let mut shape: Vec<usize> = (0..rank)
        .map(|_| dice.one_of(&[0, 1, 2, 3, 5, 7]))
        .collect();
    if rank > 0 && dice.below(3) == 0 {
        shape[dice.below(rank)] = if cfg!(miri) { 20 } else { 70 };
    }
    let (mut left, mut right) = (memory(), memory());
    let a = draw::<T>(dice, &mut left, &shape);
    let b = draw::<U>(dice, &mut right, &shape);
    let expected: Vec<(T, U)> = a
        .to_vec()
        .unwrap()
        .into_iter()
        .zip(b.to_vec().unwrap())
        .collect();
    let mut visited = Vec::new();
    for pair in a.zip(&b).unwrap() {
        visited.push(pair);
    }
    assert_eq!(visited, expected, "{a:?} {b:?}");
    visited.clear();
    a.zip(&b).unwrap().for_each(|pair| visited.push(pair));
    assert_eq!(visited, expected, "{a:?} {b:?}");
    // From the middle, by `fold` and by the remaining length.
    let mut pairs = a.zip(&b).unwrap();
    let first: Vec<(T, U)> = pairs.by_ref().take(expected.len() / 3).collect();
    assert_eq!(pairs.len(), expected.len() - first.len());
    visited = first;
    pairs.for_each(|pair| visited.push(pair));
    assert_eq!(visited, expected, "{a:?} {b:?}");
    let mut pairs = b.zip(&a).unwrap();
    assert_eq!(pairs.by_ref().count(), expected.len());
}

#[test]
fn pairs_are_those_of_the_indices() {
    for seed in 0..if cfg!(miri) { 6 } else { 3000 } {
        let dice = &mut Dice(seed);
        match seed % 6 {
            0 => check_pairs::<u8, u8>(dice),
            1 => check_pairs::<f32, u8>(dice),
            2 => check_pairs::<i16, f64>(dice),
            3 => check_pairs::<u64, i32>(dice),
            4 => check_pairs::<i8, u16>(dice),
            _ => check_pairs::<f32, f32>(dice),
        }
    }
}

#[test]
fn pairs_end_once_and_need_one_shape() {
    let a = View::<i32, [i64; 1]>::new(vec![1, 2].into_dlpack().unwrap()).unwrap();
    let b = View::<i32, [i64; 2]>::new(vec![[1], [2]].into_dlpack().unwrap()).unwrap();
    let mut pairs = a.zip(&a).unwrap();
    assert_eq!((pairs.next(), pairs.next()), (Some((1, 1)), Some((2, 2))));
    assert_eq!((pairs.next(), pairs.next(), pairs.len()), (None, None, 0));
    assert!(matches!(
        a.zip(&b),
        Err(Error::Rank {
            found: 2,
            needed: 1
        })
    ));
    let c = a.slice(0, 0..1).unwrap();
    let found = a.zip(&c).unwrap_err();
    assert!(
        matches!(
            found,
            Error::Extent {
                axis: 0,
                found: 1,
                ..
            }
        ),
        "{found}"
    );
    assert_eq!(format!("{:?}", a.zip(&a).unwrap()), "Pairs { left: 2, .. }");
}

#[test]
fn pairs_of_elements_of_several_numbers() {
    let wide = vec![[1_u16, 2, 3]; 40].into_dlpack().unwrap().shared();
    let wide = View::<[u16; 3], [i64; 1]>::new(wide).unwrap();
    let pixels = vec![[7_u8; 4]; 40].into_dlpack().unwrap();
    let pixels = View::<[u8; 4], [i64; 1]>::new(pixels).unwrap();
    assert!(wide.zip(&pixels).unwrap().eq([([1, 2, 3], [7; 4]); 40]));
}

fn broadcast<L: Rank, const M: usize>(
    array: &Array<i32, L>,
    shape: [usize; M],
) -> Result<Vec<i32>, Error>
where
    [i64; M]: Rank,
{
    array.broadcast_to(shape)?.to_vec()
}

/// Compares with an index walk: along an axis of size 1, or an absent one, each index means the same element.
#[test]
fn broadcast_elements_are_those_of_the_indices() {
    for seed in 0..if cfg!(miri) { 4 } else { 2000 } {
        let dice = &mut Dice(seed);
        let shape: [usize; 3] = core::array::from_fn(|_| dice.one_of(&[0, 1, 2, 3, 5]));
        let rank = dice.below(4);
        let own: Vec<usize> = (shape[3 - rank..].iter())
            .map(|&extent| if dice.below(3) == 0 { 1 } else { extent })
            .collect();
        let mut bytes = memory();
        let array = draw::<i32>(dice, &mut bytes, &own);
        let part = array.broadcast_to(shape).unwrap();
        assert_eq!(part.shape(), shape);
        let mut expected = Vec::new();
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                for k in 0..shape[2] {
                    let index = [i, j, k];
                    let index: Vec<usize> = (own.iter().zip(&index[3 - rank..]))
                        .map(|(&extent, &index)| if extent == 1 { 0 } else { index })
                        .collect();
                    let element = array.at(&index[..]);
                    assert_eq!(part.at([i, j, k]), element);
                    expected.push(element);
                }
            }
        }
        assert_eq!(part.to_vec().unwrap(), expected);
        assert!(part.iter().eq(expected.iter().copied()));
        let sum = expected
            .iter()
            .fold(0, |sum, &element| sum + i64::from(element));
        assert_eq!(
            (part.sum(), part.max()),
            (sum, expected.iter().copied().max())
        );
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let row = View::<i32, [i64; 1]>::new(vec![1, 2, 3].into_dlpack().unwrap()).unwrap();
    assert_eq!(broadcast(&row, [2, 3]).unwrap(), [1, 2, 3, 1, 2, 3]);
    assert!(broadcast(&row, [0, 3]).unwrap().is_empty());
    for (error, needed) in [
        (broadcast(&row, [3, 2]), vec![3, 2]),
        (broadcast(&row, [1]), vec![1]),
        (broadcast(&row, []), vec![]),
        (broadcast(&row, [3, 0]), vec![3, 0]),
    ] {
        let expected = Error::Broadcast {
            shape: vec![3],
            needed,
        };
        assert_eq!(error, Err(expected));
    }
    let text = broadcast(&row, [3, 2]).unwrap_err().to_string();
    assert!(
        text.starts_with("cannot broadcast shape [3] to shape [3, 2]: "),
        "{text}"
    );
    // The size of all elements exceeds the address space, although a broadcast allocates nothing.
    for shape in [[1 << 62, 3], [usize::MAX / 2, 3], [1 << 60, 3]] {
        assert!(
            matches!(
                row.broadcast_to(shape).err().unwrap(),
                Error::TooLarge { .. }
            ),
            "{shape:?}"
        );
    }
    assert!(matches!(
        row.broadcast_to([usize::MAX, 3]).err().unwrap(),
        Error::BadExtent { axis: 0, .. }
    ));
    let none = row.slice(0, 0..0).unwrap();
    assert_eq!(none.broadcast_to([1 << 40, 1 << 40, 0]).unwrap().len(), 0);
}

/// `for` loops accept references to each type that has elements.
#[test]
fn references_to_views_are_iterators() {
    let mut view =
        ViewMut::<i32, [i64; 2]>::new(vec![[1, 2], [3, 4]].into_dlpack().unwrap()).unwrap();
    let mut sums = [0; 4];
    for x in &view {
        sums[0] += x;
    }
    for x in &view.transpose() {
        sums[1] += x;
    }
    for x in &view.permute_mut(&[1, 0]).unwrap() {
        sums[2] += x;
    }
    let array: &Array<i32, [i64; 2]> = &view;
    for x in array {
        sums[3] += x;
    }
    assert_eq!(sums, [10; 4]);
}

/// `update` visits elements in the order of memory, `update_in_order` in the order of indices.
#[test]
fn orders_of_updates() {
    let mut view =
        ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2, 3], [4, 5, 6]].into_dlpack().unwrap()).unwrap();
    let mut order = [Vec::new(), Vec::new()];
    let mut columns = view.permute_mut(&[1, 0]).unwrap();
    columns.update(|x| {
        order[0].push(x);
        x
    });
    columns.update_in_order(|x| {
        order[1].push(x);
        x
    });
    assert_eq!(order, [[1, 2, 3, 4, 5, 6], [1, 4, 2, 5, 3, 6]]);
}

/// A record is read field by field.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[test]
fn pairs_of_records() {
    use dlpack_core::binding::UnownedArray;
    let mut trades = [
        Trade {
            price: 1.5,
            size: 2,
        },
        Trade {
            price: 2.5,
            size: 3,
        },
    ];
    let data = trades.as_mut_ptr().cast();
    let found =
        UnownedArray::<Trade, [i64; 1]>::from_records(data, &[2], &[16], true, false).unwrap();
    // SAFETY: the array outlives the view.
    let view = unsafe { found.into_view(()) };
    let counts = View::<u8, [i64; 1]>::new(vec![1_u8, 2].into_dlpack().unwrap()).unwrap();
    let expected = [(trades[0], 1), (trades[1], 2)];
    assert!(view.zip(&counts).unwrap().eq(expected));
    assert_eq!(<Trade as Record>::LAYOUT.size(), 16);
}
