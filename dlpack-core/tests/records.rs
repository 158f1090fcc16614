//! Arrays of records: their layout, reads and writes field by field, and invalid layouts.
#![expect(unsafe_code, reason = "describes memory by its address")]
#![cfg(feature = "derive")]

use core::mem::{offset_of, size_of};

use dlpack_core::array::ArrayElement;
use dlpack_core::binding::UnownedArray;
use dlpack_core::element::{FieldKind, RecordLayout};
use dlpack_core::{DLPackTensors, DataType, Element, Error, Record};

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
    bid: bool,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Book {
    id: u8,
    #[dlpack(nested)]
    best: Trade,
    #[dlpack(nested)]
    levels: [[Trade; 2]; 2],
    weights: [[f32; 3]; 2],
    r#type: u16,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[repr(C, packed)]
struct Tick {
    flag: bool,
    value: f64,
    #[dlpack(nested)]
    trade: Trade,
}

#[derive(Element, Record, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Body {
    at: Point,
    mass: f64,
}

fn trade(at: u32) -> Trade {
    Trade {
        price: f64::from(at) + 0.5,
        size: at,
        bid: at % 2 == 1,
    }
}

fn book(at: u8) -> Book {
    let number = u32::from(at);
    Book {
        id: at,
        best: trade(number),
        levels: [[trade(1), trade(2)], [trade(3), trade(number)]],
        weights: [[1.0, 2.0, 3.0], [4.0, 5.0, f32::from(at)]],
        r#type: 7,
    }
}

/// The value of every byte that belongs to no field.
const UNTOUCHED: u8 = 0xA5;

/// Writes records into bytes through an array of records.
fn write<T: ArrayElement + Copy>(records: &[T], pitch: isize) -> Vec<u8> {
    let mut bytes = vec![UNTOUCHED; records.len() * pitch.unsigned_abs()];
    let shape = [records.len() as isize];
    let found = UnownedArray::<T, [i64; 1]>::from_records(
        bytes.as_mut_ptr(),
        &shape,
        &[pitch],
        false,
        true,
    );
    // SAFETY: the bytes outlive the view.
    let mut view = unsafe { found.unwrap().into_view_mut(()) };
    view.copy_from_slice(records).unwrap();
    bytes
}

/// Reads records from bytes by each function.
fn read<T: ArrayElement + Copy + PartialEq + core::fmt::Debug>(
    bytes: &[u8],
    len: usize,
    pitch: isize,
) -> Vec<T> {
    let (data, shape) = (bytes.as_ptr().cast_mut(), [len as isize]);
    let found = UnownedArray::<T, [i64; 1]>::from_records(data, &shape, &[pitch], true, false);
    // SAFETY: the bytes outlive the view.
    let view = unsafe { found.unwrap().into_view(()) };
    let records: Vec<T> = view.iter().collect();
    assert_eq!(view.to_vec().unwrap(), records);
    let mut folded = Vec::new();
    view.iter().for_each(|record| folded.push(record));
    assert_eq!(folded, records);
    for (index, record) in records.iter().enumerate() {
        assert_eq!(view.at([index]), *record);
        assert_eq!(view.get([index]), Some(*record));
    }
    assert_eq!(view.get([len]), None);
    assert_eq!(view.strides(), [pitch]);
    // SAFETY: no code writes the bytes.
    let unshared = unsafe { view.assume_unshared() };
    assert_eq!(unshared.iter().collect::<Vec<_>>(), records);
    records
}

#[test]
fn a_layout_has_names_offsets_types_and_shapes() {
    let layout = Book::LAYOUT;
    assert_eq!(layout.size(), size_of::<Book>());
    let fields = layout.fields();
    let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
    assert_eq!(names, ["id", "best", "levels", "weights", "type"]);
    let offsets: Vec<_> = fields.iter().map(|field| field.offset()).collect();
    let expected = [
        offset_of!(Book, id),
        offset_of!(Book, best),
        offset_of!(Book, levels),
        offset_of!(Book, weights),
        offset_of!(Book, r#type),
    ];
    assert_eq!(offsets, expected);
    assert_eq!(fields[0].kind(), FieldKind::Number(DataType::U8));
    assert_eq!(fields[1].kind(), FieldKind::Record(Trade::LAYOUT));
    assert_eq!(fields[2].shape(), [2, 2]);
    assert_eq!(fields[3].shape(), [2, 3]);
    assert_eq!(fields[3].size(), 24);
    let tick: &RecordLayout = Tick::LAYOUT;
    assert_eq!((tick.size(), tick.fields()[1].offset()), (25, 1));
}

#[test]
fn records_are_written_and_read_field_by_field() {
    let books: Vec<_> = (0..40).map(book).collect();
    for pitch in [size_of::<Book>() as isize, size_of::<Book>() as isize + 8] {
        let bytes = write(&books, pitch);
        assert_eq!(read::<Book>(&bytes, books.len(), pitch), books);
    }
    let ticks = [1, 2, 3].map(|at| Tick {
        flag: at == 2,
        value: f64::from(at),
        trade: trade(at),
    });
    let bytes = write(&ticks, 25);
    assert_eq!(read::<Tick>(&bytes, 3, 25), ticks);
    let at = |x| Point { x, y: -x };
    let bodies = [1.0_f32, 2.0].map(|x| Body {
        at: at(x),
        mass: 0.5,
    });
    let bytes = write(&bodies, 16);
    assert_eq!(read::<Body>(&bytes, 2, 16), bodies);
}

#[test]
fn padding_is_never_written() {
    let bytes = write(&[trade(1), trade(2)], size_of::<Trade>() as isize);
    for record in bytes.chunks(size_of::<Trade>()) {
        assert_eq!(record[13..], [UNTOUCHED; 3]);
        assert!(record[..13].iter().any(|byte| *byte != UNTOUCHED));
    }
}

#[test]
fn a_byte_that_is_no_bool_is_true() {
    let mut bytes = write(&[trade(0)], 16);
    assert!(!read::<Trade>(&bytes, 1, 16)[0].bid);
    bytes[12] = 0x80;
    assert!(read::<Trade>(&bytes, 1, 16)[0].bid);
}

#[test]
fn arrays_of_records_are_sliced_and_changed() {
    let mut bytes = write(&[1, 2, 3, 4, 5, 6].map(trade), 16);
    let found = UnownedArray::<Trade, [i64; 2]>::from_records(
        bytes.as_mut_ptr(),
        &[2, 3],
        &[48, 16],
        false,
        true,
    );
    // SAFETY: the bytes outlive the view.
    let mut view = unsafe { found.unwrap().into_view_mut(()) };
    assert!(view.is_contiguous() && !view.transpose().is_contiguous());
    let sizes: Vec<_> = view.transpose().iter().map(|trade| trade.size).collect();
    assert_eq!(sizes, [1, 4, 2, 5, 3, 6]);
    view.update(|trade| Trade {
        size: trade.size * 10,
        ..trade
    });
    view.set([1, 1], trade(7));
    view.index_mut(0, 0).unwrap().fill(trade(9));
    let sizes: Vec<_> = view.iter().map(|trade| trade.size).collect();
    assert_eq!(sizes, [9, 9, 9, 40, 7, 60]);
    assert!(format!("{:?}", view).contains("price"));
}

#[test]
fn arrays_of_records_that_are_not_contiguous_are_filled_updated_and_copied() {
    let mut bytes = write(&[1, 2, 3, 4].map(trade), 24);
    let found = UnownedArray::<Trade, [i64; 2]>::from_records(
        bytes.as_mut_ptr(),
        &[2, 2],
        &[48, 24],
        false,
        true,
    );
    // SAFETY: the bytes outlive the view.
    let mut view = unsafe { found.unwrap().into_view_mut(()) };
    assert!(!view.is_contiguous());
    let mut others = write(&[5, 6, 7, 8].map(trade), 16);
    let others = UnownedArray::<Trade, [i64; 2]>::from_records(
        others.as_mut_ptr(),
        &[2, 2],
        &[32, 16],
        true,
        false,
    );
    // SAFETY: the bytes outlive the view.
    let others = unsafe { others.unwrap().into_view(()) };
    view.copy_from(&others.transpose()).unwrap();
    let in_order = [5, 7, 6, 8].map(trade);
    assert_eq!(view.to_vec().unwrap(), in_order);
    let mut seen = Vec::new();
    view.update(|record| {
        seen.push(record);
        Trade {
            size: record.size * 10,
            ..record
        }
    });
    assert_eq!(seen, in_order);
    let sizes: Vec<_> = view.iter().map(|trade| trade.size).collect();
    assert_eq!(sizes, [50, 70, 60, 80]);
    view.copy_from_slice(&in_order).unwrap();
    assert_eq!(view.to_vec().unwrap(), in_order);
    view.fill(trade(9));
    assert_eq!(view.to_vec().unwrap(), [trade(9); 4]);
    for record in bytes.chunks(24) {
        assert_eq!(record[13..], [UNTOUCHED; 11]);
    }
}

#[test]
fn invalid_arrays_of_records_are_refused() {
    let mut bytes = [0_u8; 64];
    let data = bytes.as_mut_ptr();
    let find = |data, shape: &[isize], strides: &[isize], read_only, writes| {
        UnownedArray::<Trade, [i64; 1]>::from_records(data, shape, strides, read_only, writes).err()
    };
    assert_eq!(find(data, &[4], &[16], true, false), None);
    assert_eq!(find(data, &[0], &[16], false, true), None);
    let rank = Error::Rank {
        found: 2,
        needed: 1,
    };
    assert_eq!(find(data, &[2, 2], &[32, 16], true, false), Some(rank));
    assert_eq!(find(data, &[4], &[16], true, true), Some(Error::ReadOnly));
    assert_eq!(find(data, &[4], &[8], false, false), None, "only read");
    assert_eq!(find(data, &[2], &[24], false, true), None, "with gaps");
    let overlap = find(data, &[4], &[8], false, true);
    assert!(
        matches!(overlap, Some(Error::Overlap { .. })),
        "{overlap:?}"
    );
    for (data, shape, stride) in [
        (data, isize::MAX, 16),
        (data, 3, isize::MAX),
        (data, -1, 16),
        (core::ptr::null_mut(), 1, 16),
    ] {
        let error = find(data, &[shape], &[stride], true, false);
        assert!(matches!(error, Some(Error::TooLarge { .. })), "{error:?}");
    }
}

#[test]
fn a_class_has_records_if_it_has_one_list_of_them_and_nothing_else() {
    #[derive(dlpack_core::DLPack)]
    struct Tape {
        #[dlpack(columns)]
        trades: Vec<Trade>,
    }

    #[derive(dlpack_core::DLPack)]
    struct Both {
        #[dlpack(columns)]
        trades: Vec<Trade>,
        #[dlpack(tensor)]
        other: Vec<f32>,
    }

    let tape = Tape {
        trades: vec![trade(1), trade(2)],
    };
    let records = tape.records().expect("one list");
    assert_eq!((records.len(), records.is_empty()), (2, false));
    assert_eq!(records.as_ptr(), tape.trades.as_ptr().cast());
    assert_eq!(records.layout(), Trade::LAYOUT);
    const { assert!(Tape::HAS_RECORDS && !Both::HAS_RECORDS) }
    let both = Both {
        trades: vec![],
        other: vec![],
    };
    assert!(both.records().is_none() && both.other.is_empty() && both.trades.is_empty());
}

#[test]
fn nested_and_packed_fields_are_no_columns() {
    assert_eq!(Book::NAMES, ["id", "weights", "type"]);
    assert!(Tick::NAMES.is_empty());
    assert_eq!(Body::NAMES, ["at", "mass"]);
}
