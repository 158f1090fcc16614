//! Views of tensors (slices, indices, permutations, reshapes): compared item by item with plain lists, and what keeps their
//! memory.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]

mod dice;
mod made;

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dice::Dice;
use dlpack_core::abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY};
use dlpack_core::binding::{
    Offer, Pick, PickedView, Root, TensorSlice, export_with, find_root, unordered_stream,
};
use dlpack_core::{
    Buffer, DLPack, Descriptor, Device, Error, ExportRequest, Managed, Parts, TensorRef, Version,
    request::Abi,
};
use made::{Foreign, U8, dtype};

/// The items of a tensor in row-major order, each as the bit at which it begins.
#[derive(Clone, PartialEq, Debug)]
struct Plain {
    shape: Vec<usize>,
    items: Vec<i64>,
}

impl Plain {
    fn of(start: i64, bits: i64, shape: &[i64], strides: &[i64]) -> Self {
        let mut items = vec![start];
        for (&extent, &stride) in shape.iter().zip(strides) {
            items = items
                .iter()
                .flat_map(|item| (0..extent).map(move |index| item + index * stride * bits))
                .collect();
        }
        let shape = shape.iter().map(|&extent| extent as usize).collect();
        Self { shape, items }
    }

    fn of_view(view: &TensorRef<'_>) -> Self {
        let start = view.as_ptr().addr() as i64 + view.byte_offset() as i64;
        let bits = view.dtype().itemsize_bits() as i64;
        Self::of(start * 8, bits, view.shape(), view.strides())
    }

    /// The items at the listed indices of each axis, in the order of these lists.
    fn at(&self, wanted: &[Vec<usize>]) -> Self {
        let mut places = vec![0];
        for (&extent, wanted) in self.shape.iter().zip(wanted) {
            places = places
                .iter()
                .flat_map(|place| wanted.iter().map(move |index| place * extent + index))
                .collect();
        }
        Self {
            shape: wanted.iter().map(Vec::len).collect(),
            items: places.iter().map(|&place| self.items[place]).collect(),
        }
    }

    fn all(&self) -> Vec<Vec<usize>> {
        let indices = self.shape.iter().map(|&extent| (0..extent).collect());
        indices.collect()
    }

    fn slice(&self, axis: usize, range: Range<usize>, step: isize) -> Self {
        let mut wanted = self.all();
        wanted[axis] = range.collect();
        if step < 0 {
            wanted[axis].reverse();
        }
        wanted[axis] = (wanted[axis].iter().copied())
            .step_by(step.unsigned_abs())
            .collect();
        self.at(&wanted)
    }

    fn index(&self, axis: usize, index: usize) -> Self {
        let mut part = self.slice(axis, index..index + 1, 1);
        part.shape.remove(axis);
        part
    }

    fn permute(&self, axes: &[usize]) -> Self {
        let shape: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        let items = (0..self.items.len())
            .map(|mut place| {
                // From the last axis to the first: the index of this item, then its position in the old order.
                let mut index = vec![0; axes.len()];
                for (&axis, &extent) in axes.iter().zip(&shape).rev() {
                    index[axis] = place % extent;
                    place /= extent;
                }
                let old = (self.shape.iter().zip(index))
                    .fold(0, |place, (&extent, index)| place * extent + index);
                self.items[old]
            })
            .collect();
        Self { shape, items }
    }

    /// Asserts that a tensor has this shape and these items.
    fn is(&self, view: &TensorRef<'_>) {
        let found = Self::of_view(view);
        assert_eq!(found.shape, self.shape);
        if self.items.is_empty() {
            assert!(view.as_ptr().is_null() && view.byte_offset() == 0);
        } else {
            assert_eq!(found.items, self.items, "{:?}", view.strides());
            // A handle is not an address, so views do not change it.
            let is_handle = !view.device().device_type.is_addressable();
            assert!(!is_handle || view.as_ptr().addr() == START);
        }
    }
}

/// The address of the tensors.
const START: usize = 1 << 20;

/// A foreign tensor of some dtype on some device: contiguous in some order, then with gaps and reversed axes. Its items are not
/// read.
/// Shape and strides are valid, and no code reads the items.
fn draw(dice: &mut Dice) -> (Foreign, Plain) {
    let dtype = dice.one_of(&[U8, dtype(0, 64, 1), dtype(17, 4, 1), dtype(0, 16, 3)]);
    let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
    let rank = dice.below(5);
    let shape: Vec<i64> = (0..rank)
        .map(|_| dice.one_of(&[0, 1, 1, 2, 3, 4, 4, 6]))
        .collect();
    let mut strides = vec![0; rank];
    let mut step = 1;
    for axis in (0..rank).rev() {
        strides[axis] = step * dice.one_of(&[1, 1, 1, -1]);
        step *= shape[axis].max(1) + dice.one_of(&[0, 0, 0, 1]);
    }
    let device = dice.one_of(&[Device::CPU, Device::cuda(0), Device::metal(0)]);
    let mut foreign = Foreign::new(core::ptr::without_provenance_mut(START), dtype, &shape);
    (foreign.device, foreign.byte_offset) = (device.into(), 1 << 16);
    foreign = foreign.strides(&strides);
    let start = (START as i64 + (1 << 16)) * 8;
    (foreign, Plain::of(start, bits, &shape, &strides))
}

#[test]
fn views_have_the_items_of_plain_lists() {
    let cases = std::env::var("DLPACK_CASES").map_or(5000, |cases| cases.parse().unwrap());
    let (mut refused, mut reshaped) = (0, 0);
    let (bad, first) = dice::play(1, cases, |dice| {
        let (foreign, mut plain) = draw(dice);
        // SAFETY: shape and strides are valid, and no code reads the items.
        let mut tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let device = tensor.view().device();
        for _ in 0..=dice.below(4) {
            let rank = plain.shape.len();
            let axis = dice.below(rank + 1);
            let within = |dice: &mut Dice, axis: usize| {
                let end = dice.below(plain.shape[axis] + 1);
                dice.below(end + 1)..end
            };
            let (cut, expected) = match dice.below(5) {
                0 if axis < rank => {
                    let range = within(dice, axis);
                    (
                        tensor.slice(axis, range.clone()),
                        plain.slice(axis, range, 1),
                    )
                }
                1 if axis < rank && plain.shape[axis] > 0 => {
                    let index = dice.below(plain.shape[axis]);
                    (tensor.index(axis, index), plain.index(axis, index))
                }
                2 => {
                    let mut axes: Vec<usize> = (0..rank).collect();
                    for place in 1..rank {
                        axes.swap(place, dice.below(place + 1));
                    }
                    (tensor.permute(&axes), plain.permute(&axes))
                }
                3 => {
                    let items = plain.items.len();
                    let mut expected = plain.clone();
                    expected.shape = match dice.below(4) {
                        0 => vec![items],
                        1 => vec![1, items, 1],
                        2 if items % 2 == 0 => vec![2, items / 2],
                        _ => [&plain.shape[..axis], &[1], &plain.shape[axis..]].concat(),
                    };
                    let is_packed = tensor.view().is_contiguous();
                    match tensor.reshape(&expected.shape) {
                        Err(Error::NotContiguous { .. }) if !is_packed => return,
                        part => {
                            reshaped += 1;
                            (part, expected)
                        }
                    }
                }
                _ => {
                    let (mut picks, mut expected, mut axis) = (Vec::new(), plain.clone(), 0);
                    for old in 0..dice.below(rank + 1) {
                        let range = within(dice, old);
                        if dice.below(4) == 0 {
                            picks.push(Pick::NewAxis);
                            expected.shape.insert(axis, 1);
                            axis += 1;
                        }
                        if dice.below(2) == 0 && !range.is_empty() {
                            picks.push(Pick::Index(range.start));
                            expected = expected.index(axis, range.start);
                        } else {
                            let step = dice.one_of(&[1, -1, 2, -2, 3, -5, isize::MAX, isize::MIN]);
                            picks.push(Pick::Slice(range.clone(), step));
                            expected = expected.slice(axis, range, step);
                            axis += 1;
                        }
                    }
                    let request = ExportRequest {
                        stream: unordered_stream(device),
                        ..ExportRequest::versioned()
                    };
                    let select =
                        |view: &mut PickedView<'_>| picks.iter().try_for_each(|one| view.pick(one));
                    let mut slice = TensorSlice::NONE;
                    let selected = slice.select(&tensor, None, select, |error| error);
                    let part = selected.and_then(|()| {
                        // SAFETY: `slice` was made of this tensor.
                        let view = unsafe { slice.view(&tensor) };
                        expected.is(&view);
                        // SAFETY: `slice` was made of this tensor.
                        let mut part = unsafe { slice.describe(&tensor) }.unwrap();
                        // SAFETY: there is no memory to keep, as no code reads the items.
                        unsafe { export_with((), &mut part, &request) }
                    });
                    (part, expected)
                }
            };
            match cut {
                Ok(part) => {
                    expected.is(&part.view());
                    assert_eq!(part.view().device(), device);
                    (tensor, plain) = (part, expected);
                }
                Err(Error::PartialOffset { bits }) => {
                    refused += 1;
                    assert!(bits % 8 != 0 && expected.items[0] % 8 != 0);
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert_eq!(bad, 0, "{first:?}");
    assert!(refused > 0 && reshaped > 0, "{refused} {reshaped}");
}

#[test]
fn invalid_views_are_refused_and_the_tensor_released() {
    let mut memory = [0_u8; 24];
    let foreign = Foreign::new(memory.as_mut_ptr(), U8, &[4, 6]);
    // SAFETY: a valid tensor; `memory` outlives it.
    let tensor = || unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let out = |axis, start, end, extent| Error::OutOfRange {
        axis,
        start,
        end,
        extent,
    };
    let none = |axis| Error::NoSuchAxis { axis, rank: 2 };
    let refused = [
        (tensor().slice(0, 3..5), out(0, 3, 5, 4)),
        #[expect(clippy::reversed_empty_ranges, reason = "such ranges are refused")]
        (tensor().slice(1, 3..2), out(1, 3, 2, 6)),
        (tensor().index(1, 6), out(1, 6, 7, 6)),
        (
            tensor().index(0, usize::MAX),
            out(0, usize::MAX, usize::MAX, 4),
        ),
        (tensor().slice(2, 0..0), none(2)),
        (tensor().permute(&[1, 1]), none(1)),
        (tensor().permute(&[0, 2]), none(2)),
        (
            tensor().permute(&[1]),
            Error::Rank {
                found: 1,
                needed: 2,
            },
        ),
        (tensor().permute(&[1, 0, 0]), none(0)),
        (
            tensor().reshape(&[5, 5]),
            Error::Count {
                found: 24,
                needed: 25,
            },
        ),
        (
            tensor().reshape(&[usize::MAX / 2, usize::MAX / 2]),
            Error::Count {
                found: 24,
                needed: usize::MAX,
            },
        ),
        (
            tensor().reshape(&[&[4, 6][..], &[1; 63]].concat()),
            Error::TooManyAxes {
                found: 65,
                most: 64,
            },
        ),
        (
            tensor().slice(1, 0..5).unwrap().reshape(&[20]),
            Error::NotContiguous {
                shape: vec![4, 5],
                strides: vec![6, 1],
            },
        ),
    ];
    let released = refused.len();
    for (part, error) in refused {
        assert_eq!(part.unwrap_err(), error);
    }
    let whole = tensor();
    let picks = [Pick::Slice(0..4, 1), Pick::Slice(0..6, 0)];
    let select = |view: &mut PickedView<'_>| picks.iter().try_for_each(|one| view.pick(one));
    let mut slice = TensorSlice::NONE;
    let stands = slice.select(&whole, None, select, |error| error);
    assert_eq!(stands.unwrap_err(), Error::BadStride { axis: 1, found: 0 });
    assert_eq!(foreign.deleted.times(), released);
}

#[test]
fn slices_are_described_without_a_block() {
    let tensor = vec![[1_u16, 2, 3], [4, 5, 6]].into_dlpack().unwrap();
    let cut = |of: Option<&TensorSlice>, picks: &[Pick]| {
        let mut slice = TensorSlice::NONE;
        let select = |view: &mut PickedView<'_>| picks.iter().try_for_each(|one| view.pick(one));
        slice
            .select(&tensor, of, select, |error| error)
            .map(|()| slice)
    };
    let is = |slice: &TensorSlice, shape: &[i64], expected: &[u16]| {
        // SAFETY: `slice` was made of this tensor.
        let view = unsafe { slice.view(&tensor) };
        assert_eq!((view.shape(), view.strides().len()), (shape, shape.len()));
        assert_eq!(view.to_vec::<u16>().unwrap(), expected);
        // SAFETY: `slice` was made of this tensor.
        let described = unsafe { slice.describe(&tensor) }.unwrap();
        assert_eq!(described.shape(), shape);
        assert_eq!(described.strides(), view.strides());
        assert_eq!(described.as_ptr(), view.as_ptr());
        assert!(described.is_read_only() && view.is_read_only() && !view.is_copied());
    };
    let row = cut(None, &[Pick::Index(1)]).unwrap();
    is(&row, &[3], &[4, 5, 6]);
    let back = cut(Some(&row), &[Pick::Slice(0..3, -1)]).unwrap();
    is(&back, &[3], &[6, 5, 4]);
    // More axes than fit inline, and fewer again.
    for more in [4, 5, 6, 7, 63] {
        let long = cut(Some(&back), &vec![Pick::NewAxis; more]).unwrap();
        is(&long, &[&vec![1; more][..], &[3]].concat(), &[6, 5, 4]);
        let short = cut(Some(&long), &vec![Pick::Index(0); more]).unwrap();
        is(&short, &[3], &[6, 5, 4]);
    }
    let (most, found) = (64, 71);
    let error = cut(Some(&back), &vec![Pick::NewAxis; 70]).unwrap_err();
    assert_eq!(error, Error::TooManyAxes { found, most });
    let none = cut(Some(&back), &[Pick::Slice(0..0, 1), Pick::NewAxis]).unwrap();
    is(&none, &[0, 1], &[]);
    // SAFETY: `none` was made of this tensor.
    assert!(unsafe { none.view(&tensor) }.as_ptr().is_null());
}

/// A view keeps the memory of its base. A view of our own tensor allocates nothing. A view of a foreign tensor allocates one
/// block, however many views follow.
#[test]
fn views_keep_their_base_in_one_block() {
    let lists = |tensor: &Managed| tensor.view().shape().as_ptr();
    let whole = vec![[1_u16, 2, 3], [4, 5, 6]].into_dlpack().unwrap();
    let block = lists(&whole);
    let part = whole.slice(1, 1..3).unwrap().permute(&[1, 0]).unwrap();
    assert_eq!(lists(&part), block);
    // More axes than fit in a block, and back.
    let long = part.reshape(&[1, 2, 1, 1, 2, 1, 1, 1]).unwrap();
    assert_ne!(lists(&long), block);
    let part = (0..7).fold(long, |part, _| part.index(0, 0).unwrap());
    assert_eq!(lists(&part), block);
    assert_eq!(part.view().to_vec::<u16>().unwrap(), [2]);
    let part = part.index(0, 0).unwrap();
    let raw = part.into_raw();
    // SAFETY: the struct is valid until it is released.
    assert!(unsafe { raw.as_ref() }.dl_tensor.shape.is_null());
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_raw(raw) });

    let mut memory = [1_u8, 2, 3, 4, 5, 6];
    for is_legacy in [false, true] {
        let foreign = Foreign::new(memory.as_mut_ptr(), U8, &[2, 3]);
        let whole = if is_legacy {
            // SAFETY: a valid tensor; `memory` outlives it.
            unsafe { Managed::from_legacy(foreign.legacy()) }
        } else {
            // SAFETY: a valid tensor; `memory` outlives it.
            unsafe { Managed::from_raw(foreign.versioned()) }
        };
        let part = whole.unwrap().index(0, 1).unwrap();
        let block = lists(&part);
        let part = part.slice(0, 1..3).unwrap();
        assert_eq!(lists(&part), block);
        assert_eq!(part.view().as_slice::<u8>().unwrap(), [5, 6]);
        assert_eq!(part.view().is_read_only(), is_legacy);
        assert_eq!(part.abi(), Abi::Versioned);
        assert_eq!(foreign.deleted.times(), 0);
        drop(part);
        assert_eq!(foreign.deleted.times(), 1);
    }
}

#[test]
fn a_view_has_the_flags_and_dtype_of_its_base() {
    let mut memory = [1_u8, 2, 3, 4];
    for flags in [
        0,
        DLPACK_FLAG_BITMASK_READ_ONLY,
        DLPACK_FLAG_BITMASK_IS_COPIED,
    ] {
        for is_shared in [false, true] {
            let mut foreign = Foreign::new(memory.as_mut_ptr(), U8, &[4]);
            foreign.flags = flags;
            // SAFETY: a valid tensor; `memory` outlives it.
            let whole = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
            let whole = if is_shared { whole.shared() } else { whole };
            let mut part = whole.slice(0, 1..3).unwrap();
            let read_only = flags == DLPACK_FLAG_BITMASK_READ_ONLY;
            assert_eq!(part.view().is_read_only(), read_only);
            // `IS_COPIED` is not repeated for a view of memory that other code has.
            assert_eq!(
                part.view().is_copied(),
                flags == DLPACK_FLAG_BITMASK_IS_COPIED && !is_shared
            );
            assert_eq!(part.view().as_slice::<u8>().is_err(), is_shared);
            assert_eq!(
                part.as_mut_slice::<u8>().is_err(),
                is_shared || read_only,
                "{flags} {is_shared}"
            );
        }
    }
    // Items of less than a byte that occupy a byte each, as the flag says.
    let nibbles = dtype(17, 4, 1);
    let mut foreign = Foreign::new(memory.as_mut_ptr(), nibbles, &[4]);
    foreign.flags = dlpack_core::abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    // SAFETY: a valid tensor; `memory` outlives it.
    let whole = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let part = whole.index(0, 3).unwrap();
    assert!(part.view().dtype().is_padded());
    assert_eq!(part.view().as_ptr(), memory.as_ptr().wrapping_add(3));
}

/// A tensor that is computed on request, from one that other code may have.
struct Computed(Mutex<Option<Managed>>);

impl DLPack for Computed {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let tensor = self.0.lock().unwrap().take().expect("asked once");
        Parts::new().via(tensor)
    }
}

/// A tensor is not flagged as a copy if its memory belongs to another producer, however it is wrapped.
#[test]
fn a_view_of_a_foreign_tensor_is_not_a_copy() {
    let mut memory = [1_u8, 2, 3, 4];
    let foreign = Foreign::new(memory.as_mut_ptr(), U8, &[4]);
    // SAFETY: a valid tensor; `memory` outlives it.
    let legacy = unsafe { Managed::from_legacy(foreign.legacy()) }.unwrap();
    // SAFETY: a valid tensor; `memory` outlives it.
    let part = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let part = part.slice(0, 1..3).unwrap();
    let own = vec![1_u8, 2].into_dlpack().unwrap().slice(0, 1..2).unwrap();
    for (tensor, is_copied) in [(legacy, false), (part, false), (own, true)] {
        let export = Computed(Mutex::new(Some(tensor))).into_dlpack().unwrap();
        assert_eq!(export.view().is_copied(), is_copied);
    }
}

/// An owner that `find_root` can identify, because no other type has its drop function.
struct CountedOwner(Arc<AtomicUsize>);

impl Drop for CountedOwner {
    /// Unlike the drop of every other owner.
    fn drop(&mut self) {
        assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "dropped twice");
    }
}

/// Whether a `CountedOwner` with this counter keeps the memory of a tensor.
fn is_kept_by(tensor: &Managed, drops: &Arc<AtomicUsize>) -> bool {
    let described = tensor.describe().unwrap();
    // SAFETY: no other owner is a `CountedOwner`, and no other type has the same drop function.
    let root = unsafe { find_root::<CountedOwner>(&described) };
    matches!(root, Some(Root::Owner(keeper)) if Arc::ptr_eq(&keeper.0, drops))
}

/// The owner of our own tensor is found after the tensor was a raw pointer, and below views and re-exports of it.
#[test]
fn the_owner_is_found_below_all_reexports() {
    let mut memory = [1_u8, 2, 3, 4];
    let again = |tensor: Managed| match tensor.abi() {
        // SAFETY: `into_raw` returned the pointer, and this is its only use.
        Abi::Versioned => unsafe { Managed::from_raw(tensor.into_raw()) }.unwrap(),
        // SAFETY: `into_legacy` returned the pointer, and this is its only use.
        Abi::Legacy => unsafe { Managed::from_legacy(tensor.into_legacy().unwrap()) }.unwrap(),
    };
    for device in [Device::CPU, Device::cuda(0)] {
        let mut foreign = Foreign::new(memory.as_mut_ptr(), U8, &[4]);
        foreign.device = device.into();
        // SAFETY: a valid tensor; `memory` outlives it, and no code reads it as memory of another device.
        let mut whole = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        for max_version in [None, Some(Version::CURRENT)] {
            let drops = Arc::new(AtomicUsize::new(0));
            assert!(!is_kept_by(&whole, &drops));
            let keeper = CountedOwner(Arc::clone(&drops));
            let request = ExportRequest {
                stream: unordered_stream(device),
                max_version,
                ..ExportRequest::default()
            };
            let mut described = whole.describe_mut().unwrap();
            // SAFETY: `memory` outlives the export.
            let export = unsafe { export_with(keeper, &mut described, &request) }.unwrap();
            assert!(is_kept_by(&export, &drops));
            let import = again(export);
            assert!(is_kept_by(&import, &drops));
            let part = again(import.slice(0, 1..4).unwrap());
            assert!(is_kept_by(&part, &drops));
            let reexport = again(part.slice(0, 1..3).unwrap());
            // SAFETY: `into_raw` returned the pointer; the tensor is used only through the offer, which is taken below.
            let offer = unsafe { Offer::of(reexport.into_raw()) }.unwrap();
            let taken = again(offer.take().unwrap());
            offer.accept();
            assert!(is_kept_by(&taken, &drops));
            assert!(!is_kept_by(&taken, &Arc::default()));
            assert_eq!(taken.view().as_ptr(), memory.as_ptr().wrapping_add(2));
            assert_eq!(drops.load(Ordering::SeqCst), 0);
            drop(taken);
            assert_eq!(drops.load(Ordering::SeqCst), 1);
        }
    }
}

/// A block has space for the shape and strides of its export. Those of a view may be longer, and shorter again.
#[test]
fn views_may_have_more_axes_than_fit_in_the_block() {
    let drops = Arc::new(AtomicUsize::new(0));
    let memory = Arc::new([1_u8, 2, 3, 4]);
    let ones = |rank: usize| [vec![4], vec![1; rank]].concat();
    for first in 0..9 {
        for second in [0, 1, 2, 5, 6, 7, 30] {
            let shape = ones(first);
            let mut whole = Parts::new().shape(&shape).describe(memory.lend()).unwrap();
            let owner = (CountedOwner(Arc::clone(&drops)), Arc::clone(&memory));
            // SAFETY: the owner keeps the memory.
            let mut tensor =
                unsafe { export_with(owner, &mut whole, &ExportRequest::versioned()) }.unwrap();
            for rank in [second, first, second] {
                tensor = tensor.reshape(&ones(rank)).unwrap();
                let shape: Vec<i64> = ones(rank).iter().map(|&extent| extent as i64).collect();
                assert_eq!(tensor.view().shape(), shape);
                assert_eq!(tensor.view().strides(), vec![1; rank + 1]);
                assert_eq!(tensor.view().to_vec::<u8>().unwrap(), *memory);
            }
            assert_eq!(drops.swap(0, Ordering::SeqCst), 0);
            drop(tensor.index(0, 3).unwrap());
            assert_eq!(drops.swap(0, Ordering::SeqCst), 1);
        }
    }
}
