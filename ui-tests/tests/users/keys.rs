//! The keys that the other files leave out, and the forms that they leave out of the others.

use core::fmt::Debug;
use std::sync::Arc;

use dlpack_core::{
    DLPack, DLPackTensors, DataType, Device, Element, Error, ExportRequest, Order, Record,
    StreamHandle, assert_exports,
};

use crate::stand_ins::Storage;
use crate::{exports, plain, start};

#[derive(DLPack)]
#[dlpack(data = &self.values[skipped..])]
struct Tail {
    values: Vec<f32>,
    skipped: usize,
}

#[derive(DLPack)]
#[dlpack(offset = first, strides = [pitch, _], shape = [2, 2])]
struct Window {
    #[dlpack(data)]
    values: Vec<i32>,
    first: usize,
    pitch: u8,
}

#[test]
fn a_part_of_the_data() {
    let values = vec![0.0; 4];
    let data = start(&values[1..]);
    let tail = Tail { values, skipped: 1 };
    exports(tail, &plain(data, &[3], &[1], DataType::F32).shared());

    let values = vec![0; 9];
    let data = start(&values[4..]);
    let window = Window {
        values,
        first: 4,
        pitch: 3,
    };
    exports(window, &plain(data, &[2, 2], &[3, 1], DataType::I32));
}

#[derive(DLPack)]
struct Boxed {
    #[dlpack(data)]
    values: Box<[u8]>,
    #[dlpack(shape)]
    dims: Box<[i32]>,
    #[dlpack(strides)]
    steps: Vec<i16>,
    #[dlpack(offset)]
    first: u32,
}

#[test]
fn lists_of_any_integers() {
    let values: Box<[u8]> = Box::from([0; 8]);
    let data = values[1..].as_ptr();
    let boxed = Boxed {
        values,
        dims: Box::from([2, 3]),
        steps: vec![4, 1],
        first: 1,
    };
    exports(boxed, &plain(data, &[2, 3], &[4, 1], DataType::U8));
}

#[derive(DLPack)]
#[dlpack(shape = [2, _], order = "C")]
struct RowMajor(Vec<f32>);

#[derive(DLPack)]
#[dlpack(shape = [2, _], order = if *turned { Order::F } else { Order::C })]
struct Turned {
    #[dlpack(data)]
    values: Vec<f32>,
    turned: Box<bool>,
}

#[test]
fn an_order_by_word_and_by_expression() {
    let values = vec![0.0; 6];
    let data = start(&values);
    exports(
        RowMajor(values),
        &plain(data, &[2, 3], &[3, 1], DataType::F32),
    );
    for (turned, strides) in [(true, [1, 2]), (false, [3, 1])] {
        let values = vec![0.0; 6];
        let data = start(&values);
        let turned = Turned {
            values,
            turned: Box::new(turned),
        };
        exports(turned, &plain(data, &[2, 3], &strides, DataType::F32));
    }
}

#[derive(DLPack)]
#[dlpack(elem = [f32; 3])]
struct Points {
    #[dlpack(data)]
    flat: Vec<f32>,
    name: String,
}
assert_exports!(Points: f32, rank 2);

#[test]
fn flat_values_as_points() {
    let flat = vec![0.0; 6];
    let data = start(&flat);
    let points = Points {
        flat,
        name: "bunny".to_owned(),
    };
    assert_eq!(points.name, "bunny");
    exports(points, &plain(data, &[2, 3], &[3, 1], DataType::F32));
}

#[derive(DLPack)]
#[dlpack(
    // SAFETY: the storage keeps its memory, where it is, as long as it lives; no code writes to it.
    unsafe(data = self.storage.as_ptr(), len = self.storage.len()),
    stream = stream
)]
struct Mapped {
    storage: Storage,
    #[dlpack(device)]
    device: Device,
    stream: StreamHandle,
}

#[test]
fn a_pointer_lies_where_the_device_says() -> Result<(), Error> {
    let storage = Storage::new(&[0.0; 5]);
    let data: *const u8 = storage.as_ptr().cast();
    let mapped = Mapped {
        storage,
        device: Device::rocm(1),
        stream: StreamHandle::DEFAULT,
    };
    let described = mapped.describe()?;
    assert_eq!(
        (described.device(), described.as_ptr()),
        (Device::rocm(1), data)
    );
    assert_eq!(described.stream(), Some(StreamHandle::DEFAULT.into()));
    assert_eq!(described.shape(), [5]);
    Ok(())
}

#[derive(DLPack)]
struct Table {
    #[dlpack(data, readonly)]
    entries: Vec<u16>,
}
assert_exports!(Table: u16, rank 1, readonly);

#[derive(DLPack)]
struct Canvas {
    #[dlpack(data, writable)]
    cells: Vec<u16>,
}
assert_exports!(Canvas: u16, rank 1, writable);

#[derive(DLPack)]
#[dlpack(crate = dlpack_core, readonly)]
struct Owned(Box<[u16]>);
assert_exports!(Owned: u16, rank 1, readonly);

#[test]
fn who_may_write() {
    let entries = vec![0; 3];
    let data = start(&entries);
    exports(
        Table { entries },
        &plain(data, &[3], &[1], DataType::U16).shared(),
    );
    let cells = vec![0; 3];
    let data = start(&cells);
    exports(Canvas { cells }, &plain(data, &[3], &[1], DataType::U16));
    let list: Box<[u16]> = Box::from([0; 3]);
    let data = start(&list);
    exports(
        Owned(list),
        &plain(data, &[3], &[1], DataType::U16).shared(),
    );
}

#[derive(DLPack)]
#[dlpack(
    tensor(name = "head", data = &self.flat[..2], shape = [1, _]),
    // SAFETY: a vector keeps its elements, where they are, while it is borrowed.
    tensor(name = "raw", unsafe(data = self.flat.as_ptr(), len = self.flat.len()), device = Device::CPU, readonly),
    legacy = "refuse"
)]
struct Multi {
    #[dlpack(data, tensor(name = "square", shape = [2, 2], order = "F", offset = 1))]
    flat: Vec<f32>,
    #[dlpack(tensor(shape = [2], strides = [2], byte_offset = 2, dtype = DataType::I16, readonly))]
    pairs: Vec<u16>,
    #[dlpack(tensor(byte_strides = [8], shape = [2], elem = u32, stream = StreamHandle::DEFAULT, device = Device::CPU))]
    words: Vec<u32>,
}

#[test]
fn every_key_speaks_of_its_own_tensor() -> Result<(), Error> {
    let multi = Multi {
        flat: vec![0.0; 5],
        pairs: vec![0; 6],
        words: vec![0; 4],
    };
    assert_eq!(Multi::NAMES, ["head", "raw", "square", "pairs", "words"]);
    assert_eq!(multi.describe()?.shape(), [5]);
    let head = multi.describe_head()?;
    assert_eq!(
        (head.shape(), head.as_ptr()),
        (&[1, 2][..], start(&multi.flat))
    );
    let raw = multi.describe_raw()?;
    assert_eq!((raw.shape(), raw.is_read_only()), (&[5][..], true));
    let square = multi.describe_square()?;
    assert_eq!(
        (square.strides(), square.as_ptr()),
        (&[1, 2][..], start(&multi.flat[1..]))
    );
    let pairs = multi.describe_pairs()?;
    assert_eq!(
        (pairs.dtype(), pairs.as_ptr()),
        (DataType::I16, start(&multi.pairs[1..]))
    );
    assert_eq!((pairs.shape(), pairs.strides()), (&[2][..], &[2][..]));
    let words = multi.describe_words()?;
    assert_eq!((words.shape(), words.strides()), (&[2][..], &[2][..]));
    assert_eq!(words.stream(), Some(StreamHandle::DEFAULT.into()));
    Ok(())
}

#[derive(Record)]
#[repr(C)]
struct Quote {
    price: f64,
    #[dlpack(skip)]
    note: u64,
    size: u32,
}

#[derive(DLPack)]
struct Book {
    #[dlpack(columns)]
    asks: Vec<Quote>,
    #[dlpack(tensor)]
    depth: Vec<f32>,
}

#[test]
fn columns_beside_tensors() -> Result<(), Error> {
    let book = Book {
        asks: vec![Quote {
            price: 1.0,
            note: 9,
            size: 3,
        }],
        depth: vec![0.0; 2],
    };
    assert_eq!(Book::NAMES, ["depth", "price", "size"]);
    assert_eq!(book.describe_tensor("size")?.dtype(), DataType::U32);
    assert_eq!(book.describe_depth()?.shape(), [2]);
    assert!(book.describe_tensor("note").is_err());
    let Quote { price, note, size } = book.asks[0];
    assert_eq!((price, note, size), (1.0, 9, 3));
    Ok(())
}

#[derive(DLPack)]
#[dlpack(via = self.doubled(), release = "immediate")]
struct Computed(Vec<f32>);

impl Computed {
    fn doubled(&self) -> Vec<f32> {
        self.0.iter().map(|value| value * 2.0).collect()
    }
}

#[derive(DLPack)]
#[dlpack(legacy = "refuse")]
struct Strict {
    #[dlpack(data)]
    values: Arc<[f32]>,
}

#[test]
fn a_tensor_for_the_occasion_and_one_without_copies() -> Result<(), Error> {
    let tensor = Arc::new(Computed(vec![1.0, 2.0])).to_dlpack()?;
    assert_eq!(tensor.view().as_slice::<f32>()?, [2.0, 4.0]);
    assert!(!tensor.view().is_read_only(), "nobody else has it");

    let strict = Arc::new(Strict {
        values: Arc::from([1.0, 2.0]),
    });
    let legacy = ExportRequest::default();
    assert_eq!(
        strict.to_dlpack_with(&legacy).unwrap_err(),
        Error::LegacyReadOnly
    );
    assert_eq!(strict.to_dlpack()?.view().as_ptr(), start(&strict.values));
    Ok(())
}

#[derive(DLPack)]
#[dlpack(bound = "T: Element + Debug")]
struct Bounded<T> {
    #[dlpack(data)]
    values: Vec<T>,
    #[dlpack(shape)]
    dims: [usize; 1],
}

#[test]
fn bounds_that_the_struct_does_not_have() {
    let values = vec![1_u8, 2];
    let data = start(&values);
    let bounded = Bounded { values, dims: [2] };
    exports(bounded, &plain(data, &[2], &[1], DataType::U8));
}
