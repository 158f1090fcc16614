//! Tensors of a producer that gets its fields wrong.

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

/// NEG-12, LAY-22, CAP-09, ERR-11: each tensor is refused exactly if it breaks the format, is read as what it is, and is
/// released once.
#[test]
fn forgeries() {
    let mut memory = forgery::memory();
    let start = memory.as_mut_ptr().cast::<u8>();
    campaign("crafted tensors", 50_000, move |dice| {
        let forgery = Forgery::draw(dice, start);
        // SAFETY: `memory` lives as long as this closure, into which `start` went; what consumers write there is what stood there.
        let memory = unsafe { core::slice::from_raw_parts(start, BYTES) };
        let deleted = forgery.foreign.deleted.clone();
        let tensor = forgery.make();
        // SAFETY: the lists are as long as they say; the items are read only if they are there.
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
            // SAFETY: without a deleter, and the import is gone.
            unsafe { tensor.free() };
        }
        is_taken
    });
    drop(memory);
}

/// Does one of the things that are done with a tensor, and compares what that gives.
fn go_on(managed: Managed, forgery: &Forgery, memory: &[u8], dice: &mut Dice) {
    let foreign = &forgery.foreign;
    let view = managed.view();
    assert_eq!(view.strides(), forgery.strides(), "{forgery:?}");
    assert_eq!(view.shape(), foreign.shape.as_deref().unwrap_or_default());
    let must_not_write = forgery.legacy || foreign.flags & 1 != 0;
    assert_eq!(view.is_read_only(), must_not_write, "{forgery:?}");
    // SAFETY: as the caller said.
    let again = |tensor| unsafe { Managed::from_raw(tensor) }.expect("it was good before");
    if !forgery.is_honest(memory) || forgery.is_long() {
        // Whatever it is, it can be moved and asked about.
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
                // SAFETY: given up right here.
                let tensor = unsafe { Managed::from_legacy(tensor) }.expect("it was good before");
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

/// The bytes of the items, in the order of their indices; `None` where an item has no whole bytes.
fn expected(forgery: &Forgery, memory: &[u8]) -> Option<Vec<u8>> {
    let foreign = &forgery.foreign;
    let DLDataType { bits, lanes, .. } = foreign.dtype;
    let size = usize::from(bits) * usize::from(lanes);
    let start = foreign.data.addr().wrapping_sub(memory.as_ptr().addr());
    let start = start.wrapping_add(usize::try_from(foreign.byte_offset).unwrap_or(0));
    let shape = foreign.shape.as_deref().unwrap_or_default();
    (size % 8 == 0).then(|| items(shape, &forgery.strides(), start, size / 8, memory))?
}

/// That a tensor which was handed on has the items of the first.
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

/// Imports it into values of a type; whether it has to fit is known.
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
                    // What is written is what stood there.
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
            // Whatever byte lies there, a `bool` is made of it.
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
            // No struct keeps the lowest stride of all: it marks one that is left out.
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

/// Writes into every item what stands there.
fn write_back<T: Plain>(buffer: &SharedBuffer<T>) {
    for index in 0..if buffer.is_read_only() {
        0
    } else {
        buffer.len()
    } {
        buffer.set(index, buffer.get(index));
    }
}
