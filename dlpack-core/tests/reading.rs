//! Reads: vectors and iterators give the items that an index walk gives, for any shape, strides and address. While another thread
//! writes, each number that is read is one that was written.

#![expect(unsafe_code, reason = "makes foreign tensors")]

mod dice;
mod made;

use core::fmt::Debug;
use core::sync::atomic::{AtomicBool, Ordering};

use dice::Dice;
use dlpack_core::element::Plain;
use dlpack_core::{Managed, SharedBuffer};
use made::{Foreign, dtype};

/// An item type, by the bytes of its values.
trait Item: Plain + Copy + PartialEq + Debug {
    const CODE: u8;
    /// Makes an item of its bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! items {
    ($($item:ty: $code:literal)*) => {$(
        impl Item for $item {
            const CODE: u8 = $code;
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("as many"))
            }
        }
    )*};
}
items! { u8: 1 i16: 0 u32: 1 u64: 1 u128: 1 }

impl Item for bool {
    const CODE: u8 = 6;
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

/// A tensor over its own bytes, which start at any address and end with the last item.
struct Case<T> {
    bytes: Vec<u8>,
    first: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
    expected: Vec<T>,
}

impl<T: Item> Case<T> {
    fn new(dice: &mut Dice, shape: Vec<i64>, strides: Vec<i64>) -> Self {
        let mut offsets = vec![0];
        for (&extent, &stride) in shape.iter().zip(&strides) {
            offsets = (offsets.iter())
                .flat_map(|at| (0..extent).map(move |index| at + index * stride))
                .collect();
        }
        let lowest = offsets.iter().copied().min().unwrap_or(0);
        let highest = offsets.iter().copied().max().unwrap_or(-1);
        let skip = dice.below(17);
        let place = |offset: i64| skip + usize::try_from(offset - lowest).unwrap() * size_of::<T>();
        let range = if T::CODE == 6 { 2 } else { 256 };
        let bytes: Vec<u8> = (0..place(highest + 1))
            .map(|_| u8::try_from(dice.below(range)).unwrap())
            .collect();
        let item = |&offset: &i64| T::from_bytes(&bytes[place(offset)..][..size_of::<T>()]);
        let expected = offsets.iter().map(item).collect();
        Self {
            first: if offsets.is_empty() { 0 } else { place(0) },
            bytes,
            shape,
            strides,
            expected,
        }
    }

    /// Reads the tensor into a vector, item by item, by folds, and from the middle.
    fn check(&mut self, dice: &mut Dice) {
        let bits = u8::try_from(size_of::<T>() * 8).unwrap();
        let data = self.bytes.as_mut_ptr().wrapping_add(self.first);
        let foreign = Foreign::new(data, dtype(T::CODE, bits, 1), &self.shape);
        let foreign = foreign.strides(&self.strides);
        for shared in [false, true] {
            // SAFETY: all items lie in `bytes`, which outlive the tensor and are not written.
            let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
            let managed = if shared { managed.shared() } else { managed };
            let what = format!(
                "shape {:?}, strides {:?}, shared {shared}",
                self.shape, self.strides
            );
            let (view, expected) = (managed.view(), &self.expected);
            assert_eq!(&view.to_vec::<T>().unwrap(), expected, "{what}");
            let items = view.iter::<T>().unwrap();
            let mut listed = Vec::new();
            for item in items.clone() {
                listed.push(item);
            }
            assert_eq!(&listed, expected, "{what}");
            let mut folded = Vec::new();
            items.clone().for_each(|item| folded.push(item));
            assert_eq!(&folded, expected, "{what}");
            assert_eq!(items.len(), expected.len());
            assert_eq!(items.clone().count(), expected.len());

            let (mut some, mut theirs) = (items, expected.iter().copied());
            for _ in 0..dice.below(4) {
                let most = dice.below(1 + expected.len() / 2);
                let n = dice.below(1 + most);
                assert_eq!(some.nth(n), theirs.nth(n), "{n} further on, {what}");
                assert_eq!(some.next(), theirs.next(), "{what}");
                assert_eq!(some.size_hint(), theirs.size_hint(), "{what}");
            }
            let rest: Vec<T> = some.clone().fold(Vec::new(), |mut rest, item| {
                rest.push(item);
                rest
            });
            assert_eq!(rest, theirs.collect::<Vec<_>>(), "{what}");
            assert_eq!(some.nth(rest.len() + dice.below(3)), None, "{what}");
            assert_eq!((some.next(), some.len()), (None, 0), "{what}");
            assert_eq!(some.nth(usize::MAX), None, "{what}");
        }
    }
}

fn any_case<T: Item>(dice: &mut Dice) {
    let (mut shape, mut strides) = (vec![], vec![]);
    // Sometimes more items than are read in one batch. Miri takes minutes for those, and for the bytes between distant items.
    let (most_items, most_stride): (&[i64], i64) = if cfg!(miri) {
        (&[30, 300], 9)
    } else {
        (&[30, 3000, 9000], 200)
    };
    let mut room = dice.one_of(most_items);
    for _ in 0..dice.below(8) {
        let extent = match dice.below(12) {
            0 => i64::from(dice.below(4) > 0),
            1..=3 => 1,
            4 => dice.between(1, 5000),
            _ => dice.between(2, 9),
        }
        .min(room);
        room /= extent.max(1);
        shape.push(extent);
        strides.push(match dice.below(4) {
            0 => dice.between(-1, 1),
            1 => dice.between(-most_stride, most_stride),
            // The stride that continues the axes before it.
            _ => shape.iter().product::<i64>().max(1) / extent.max(1),
        });
    }
    if dice.below(2) == 0 {
        shape.reverse();
        strides.reverse();
    }
    Case::<T>::new(dice, shape, strides).check(dice);
}

#[test]
fn every_read_agrees_with_an_index_walk() {
    let cases = std::env::var("DLPACK_CASES").map_or(1500, |cases| cases.parse().unwrap());
    let (bad, first) = dice::play(1, cases, |dice| match dice.below(6) {
        0 => any_case::<u8>(dice),
        1 => any_case::<i16>(dice),
        2 => any_case::<u32>(dice),
        3 => any_case::<u64>(dice),
        4 => any_case::<u128>(dice),
        _ => any_case::<bool>(dice),
    });
    assert_eq!(bad, 0, "{first:?}");
}

/// A broadcast array has too many items to visit, but its length is known, and `nth` skips items without visiting them.
#[test]
fn broadcast_arrays_are_skipped_without_visits() {
    let mut bytes = vec![1_u8, 2, 3];
    let foreign = Foreign::new(bytes.as_mut_ptr(), made::U8, &[1 << 40, 3, 1 << 10]);
    let foreign = foreign.strides(&[0, 1, 0]);
    // SAFETY: all items lie in `bytes`, which outlive the tensor.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }
        .unwrap()
        .shared();
    let mut items = managed.view().iter::<u8>().unwrap();
    assert_eq!(items.len(), 3 << 50);
    assert_eq!(items.nth((3 << 49) + (1 << 10)), Some(2));
    assert_eq!(items.nth((3 << 49) - (1 << 10) - 2), Some(3));
    assert_eq!(items.next(), None);
}

/// A number type with values whose bytes are all equal.
trait Even: Item + Send + Sync {
    fn even(byte: u8) -> Self;
    fn is_even(self) -> bool;
}

macro_rules! even {
    ($($number:ty)*) => {$(
        impl Even for $number {
            fn even(byte: u8) -> Self {
                Self::from_ne_bytes([byte; size_of::<Self>()])
            }
            fn is_even(self) -> bool {
                let bytes = self.to_ne_bytes();
                bytes.iter().all(|&byte| byte == bytes[0])
            }
        }
    )*};
}
even! { u8 i16 u32 u64 }

/// Ends the writing thread when it is dropped, also when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While another thread writes, many numbers at a time and one by one, each number that is read is one that it wrote: in long
/// runs and short ones, strided, reversed and transposed, from any offset in a cache line.
fn check_that_no_number_is_torn<T: Even>() {
    let len: usize = if cfg!(miri) { 300 } else { 40_000 };
    let buffer = SharedBuffer::<T>::zeroed(len).unwrap();
    let (over, rounds) = (AtomicBool::new(false), if cfg!(miri) { 1 } else { 8 });
    let whole = |item: T| assert!(item.is_even() || cfg!(miri), "{item:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for byte in (0..=u8::MAX).cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                buffer.fill(T::even(byte));
                buffer.set(usize::from(byte) % len, T::even(!byte));
                buffer.set_range(usize::from(byte) % 16, &vec![T::even(byte / 2); len - 16]);
            }
        });
        let _over = Over(&over);
        let end = i64::try_from(len).unwrap() - 8;
        let half = end / 2;
        for round in 0..rounds {
            let start = usize::try_from(round % 8).unwrap();
            let at = |index: i64| {
                let items = usize::try_from(index).unwrap();
                buffer.as_ptr().wrapping_add(start + items).cast::<u8>()
            };
            let bits = u8::try_from(size_of::<T>() * 8).unwrap();
            let square = end.isqrt();
            for (first, shape, strides) in [
                (0, vec![end], vec![1]),
                (0, vec![100], vec![1]),
                (0, vec![half], vec![2]),
                (end - 1, vec![end], vec![-1]),
                (0, vec![square, square], vec![1, square]),
                (0, vec![square, square / 2], vec![square, 1]),
                (0, vec![square, 2], vec![3, 1]),
                (0, vec![square, 3], vec![5, 1]),
            ] {
                let foreign = Foreign::new(at(first), dtype(T::CODE, bits, 1), &shape);
                // SAFETY: all items lie in the buffer, which all code accesses atomically.
                let managed = unsafe { Managed::from_raw(foreign.strides(&strides).versioned()) };
                let managed = managed.unwrap().shared();
                managed
                    .view()
                    .to_vec::<T>()
                    .unwrap()
                    .into_iter()
                    .for_each(whole);
                managed.view().iter::<T>().unwrap().for_each(whole);
                for item in managed.view().iter::<T>().unwrap() {
                    whole(item);
                }
            }
            let mut copy = vec![T::even(0); len - start];
            buffer.get_range(start, &mut copy);
            copy.into_iter().for_each(whole);
            buffer.to_vec().into_iter().for_each(whole);
        }
    });
}

#[test]
fn numbers_are_not_torn_while_another_thread_writes() {
    check_that_no_number_is_torn::<u8>();
    check_that_no_number_is_torn::<i16>();
    check_that_no_number_is_torn::<u32>();
    check_that_no_number_is_torn::<u64>();
}
