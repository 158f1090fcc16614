//! Tensors of a producer that makes mistakes in their fields.

use core::fmt::Debug;
use std::sync::Arc;

use dlpack_core::abi::DLDataType;
use dlpack_core::array::{View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::{DLPack, DataType, Error, ExportRequest, FromDLPack, Managed, SharedBuffer};

use crate::campaign;
use crate::dice::Dice;
use crate::forgery::{self, BYTES, Forgery, Verdict, bytes, items, look};

/// NEG-12, LAY-22, CAP-09, ERR-11: each tensor is refused exactly if it violates the format, is read correctly otherwise, and is
/// released once.
#[test]
fn forgeries() {
    let mut memory = forgery::memory();
    let start = memory.as_mut_ptr().cast::<u8>();
    campaign("crafted tensors", 50_000, move |dice| {
        let forgery = Forgery::draw(dice, start);
        // SAFETY: `memory` outlives this closure, which has its address in `start`. Consumers write only the values that are
        // already there.
        let memory = unsafe { core::slice::from_raw_parts(start, BYTES) };
        let deleted = forgery.foreign.deleted.clone();
        let tensor = forgery.make();
        // SAFETY: the lists have the length that the rank says; the items are read only if they lie in `memory`.
        let imported = unsafe { tensor.import() };
        let is_taken = imported.is_ok();
        match (forgery.verdict(), imported) {
            (Verdict::Refused(why), Ok(_)) => panic!("taken in spite of {why}: {forgery:?}"),
            (Verdict::Taken, Err(error)) => panic!("refused by {error}: {forgery:?}"),
            (_, Err(error)) => assert!(!error.to_string().is_empty()),
            (_, Ok(managed)) => {
                assert_eq!(deleted.times(), 0, "released early: {forgery:?}");
                go_on(managed, &forgery, memory, dice);
            }
        }
        let expected = usize::from(forgery.foreign.has_deleter);
        assert_eq!(deleted.times(), expected, "releases: {forgery:?}");
        if !forgery.foreign.has_deleter {
            // SAFETY: the struct has no deleter, and the import is gone.
            unsafe { tensor.free() };
        }
        is_taken
    });
    drop(memory);
}

/// Does one randomly chosen operation with a tensor, and compares its result.
fn go_on(managed: Managed, forgery: &Forgery, memory: &[u8], dice: &mut Dice) {
    let foreign = &forgery.foreign;
    let view = managed.view();
    assert_eq!(view.strides(), forgery.strides(), "{forgery:?}");
    assert_eq!(view.shape(), foreign.shape.as_deref().unwrap_or_default());
    let must_not_write = forgery.legacy || foreign.flags & 1 != 0;
    assert_eq!(view.is_read_only(), must_not_write, "{forgery:?}");
    // SAFETY: `into_raw` returned the pointer, and this is its only use.
    let again = |tensor| unsafe { Managed::from_raw(tensor) }.expect("it was valid before");
    if !forgery.is_honest(memory) || forgery.is_long() {
        // Its items cannot be read here, but it can be moved, shared and printed.
        match dice.below(3) {
            0 => drop(again(managed.into_raw())),
            1 => drop(managed.shared()),
            _ => assert!(!format!("{managed:?}").is_empty()),
        }
        return;
    }
    match dice.below(10) {
        0 => drop(managed),
        1 => look(&managed, memory),
        2 => look(&managed.shared(), memory),
        3 => look(&again(managed.into_raw()), memory),
        4 => {
            let copy = ExportRequest {
                copy: Some(true),
                ..ExportRequest::versioned()
            };
            if let Ok(copy) = managed.into_dlpack_with(&copy) {
                same(&copy, forgery, memory);
            }
        }
        5 => {
            if let Ok(tensor) = managed.into_legacy() {
                // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
                let tensor = unsafe { Managed::from_legacy(tensor) }.expect("it was valid before");
                same(&tensor, forgery, memory);
            }
        }
        6 if dice.below(100) == 0 => {
            let thread = std::thread::spawn(move || drop(managed));
            thread.join().expect("a deleter does not unwind");
        }
        7 => {
            let shared = Arc::new(managed);
            let tensors = [shared.to_dlpack(), shared.to_dlpack()];
            drop(shared);
            for tensor in tensors.into_iter().flatten() {
                same(&tensor, forgery, memory);
            }
        }
        _ => match dice.below(5) {
            0 => typed::<u8>(managed, forgery, memory, dice),
            1 => typed::<f64>(managed, forgery, memory, dice),
            2 => typed::<bool>(managed, forgery, memory, dice),
            3 => typed::<f32>(managed, forgery, memory, dice),
            _ => typed::<i32>(managed, forgery, memory, dice),
        },
    }
}

/// The bytes of the items in the order of their indices; `None` if an item is not a whole number of bytes.
fn expected(forgery: &Forgery, memory: &[u8]) -> Option<Vec<u8>> {
    let foreign = &forgery.foreign;
    let DLDataType { bits, lanes, .. } = foreign.dtype;
    let size = usize::from(bits) * usize::from(lanes);
    let start = foreign.data.addr().wrapping_sub(memory.as_ptr().addr());
    let start = start.wrapping_add(usize::try_from(foreign.byte_offset).unwrap_or(0));
    let shape = foreign.shape.as_deref().unwrap_or_default();
    (size % 8 == 0).then(|| items(shape, &forgery.strides(), start, size / 8, memory))?
}

/// Asserts that a re-exported tensor has the items of the first.
fn same(tensor: &Managed, forgery: &Forgery, memory: &[u8]) {
    fn read<T: Plain>(tensor: &Managed, expected: &[u8]) {
        if let Ok(items) = tensor.view().to_vec::<T>() {
            assert_eq!(bytes(&items), expected);
        }
    }
    let shape = forgery.foreign.shape.as_deref().unwrap_or_default();
    assert_eq!(tensor.view().shape(), shape);
    if let Some(expected) = expected(forgery, memory) {
        read::<u8>(tensor, &expected);
        read::<i32>(tensor, &expected);
        read::<f32>(tensor, &expected);
        read::<f64>(tensor, &expected);
        read::<bool>(tensor, &expected);
    }
}

#[derive(FromDLPack, DLPack)]
struct Rows<T: Plain> {
    #[dlpack(data)]
    values: Vec<T>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(FromDLPack, DLPack)]
struct Adopted<T: Plain> {
    #[dlpack(data)]
    values: SharedBuffer<T>,
    #[dlpack(shape)]
    dims: Vec<usize>,
    #[dlpack(strides)]
    strides: Vec<isize>,
}

/// Imports the tensor into values of one type, and checks whether it is accepted exactly if it fits.
fn typed<T: Plain + Debug>(managed: Managed, forgery: &Forgery, memory: &[u8], dice: &mut Dice) {
    let foreign = &forgery.foreign;
    let shape = foreign.shape.clone().unwrap_or_default();
    let found = DataType::new(foreign.dtype.code, foreign.dtype.bits, foreign.dtype.lanes);
    let expected = expected(forgery, memory).filter(|expected| {
        let is_bool = T::DTYPE == DataType::BOOL;
        found == T::DTYPE && !(is_bool && expected.iter().any(|&byte| byte > 1))
    });
    let rank = shape.len();
    let is_packed = managed.view().is_contiguous();
    let start = managed.view().as_ptr().addr();
    let check = |values: Result<Vec<T>, Error>, fits: bool| match (values, &expected) {
        (Ok(values), Some(expected)) => assert_eq!(&bytes(&values), expected, "{forgery:?}"),
        (Ok(_), None) => panic!("a {found} was taken for a {}: {forgery:?}", T::DTYPE),
        (Err(error), Some(_)) if fits => panic!("{error}: {forgery:?}"),
        (Err(_), _) => {}
    };
    match dice.below(5) {
        4 => {
            let view = match ViewMut::<T, Dims>::try_new(managed) {
                Ok(mut view) => {
                    // Writes back the same values.
                    if T::DTYPE != DataType::BOOL {
                        view.update(|item| item);
                    }
                    View::new(view.into_managed())
                }
                Err((_, managed)) => View::<T, Dims>::new(managed),
            };
            let items = view.and_then(|view| {
                assert_eq!(view.iter().count(), view.len());
                // There can be as many empty rows as there are numbers, or as many rows of one item.
                if (1..1 << 16).contains(&view.len()) {
                    let turned = view.transpose();
                    let lengths = turned.rows().map(|row| row.len());
                    assert_eq!(lengths.sum::<usize>(), view.len());
                }
                view.to_vec()
            });
            // Any byte is accepted as a `bool` here.
            if T::DTYPE != DataType::BOOL {
                check(items, true);
            }
        }
        0 => check(Vec::from_dlpack(managed), rank >= 1),
        1 => {
            let rows = Rows::<T>::from_dlpack(managed);
            if let Ok(rows) = &rows {
                assert_eq!(
                    rows.dims.map(|extent| i64::try_from(extent).unwrap())[..],
                    shape
                );
            }
            check(rows.map(|rows| rows.values), rank == 2);
        }
        2 => {
            let buffer = SharedBuffer::<T>::from_dlpack(managed);
            let fits = rank >= 1 && is_packed && start % align_of::<T>() == 0;
            if let Ok(buffer) = &buffer {
                write_back(buffer);
                let export = Arc::new(buffer.clone()).to_dlpack().expect("a list");
                assert_eq!(export.view().is_read_only(), buffer.is_read_only());
                check(export.view().to_vec::<T>(), true);
            }
            check(buffer.map(|buffer| buffer.to_vec()), fits);
        }
        _ => {
            // The lowest stride of all is not kept: it is the mark of an omitted stride.
            let is_kept = !managed.view().strides().contains(&i64::MIN);
            let adopted = Adopted::<T>::from_dlpack(managed);
            if let Ok(adopted) = &adopted {
                write_back(&adopted.values);
            }
            let fits = rank >= 1 && is_packed && is_kept && start % align_of::<T>() == 0;
            let values =
                adopted.and_then(|adopted| Arc::new(adopted).to_dlpack()?.view().to_vec::<T>());
            check(values, fits);
        }
    }
}

/// Writes its own value into every item.
fn write_back<T: Plain>(buffer: &SharedBuffer<T>) {
    for index in 0..if buffer.is_read_only() {
        0
    } else {
        buffer.len()
    } {
        buffer.set(index, buffer.get(index));
    }
}
