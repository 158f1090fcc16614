//! The shapes of users' data, each annotated as its owner would.

use std::sync::Arc;

use dlpack_core::{
    AsOrder, DLPack, DLPackTensors, DataType, Device, Element, Error, Order, Record, StreamHandle,
    assert_exports,
};
use ndarray::{Array2, Array3, array};
use num_complex::Complex;

use crate::stand_ins::{CudaContext, CudaSlice, Mmap, MtlBuffer, Pool};
use crate::{exports, plain, start};

#[derive(DLPack)]
#[dlpack(shape = [rows, cols])]
struct Matrix<T: Element> {
    #[dlpack(data)]
    values: Vec<T>,
    rows: usize,
    cols: usize,
}
assert_exports!(Matrix<i8>: i8, rank 2);

#[test]
fn a_vec_with_rows_and_columns() {
    let values = vec![0_i64; 6];
    let data = start(&values);
    let matrix = Matrix {
        values,
        rows: 2,
        cols: 3,
    };
    exports(matrix, &plain(data, &[2, 3], &[3, 1], DataType::I64));
}

#[derive(DLPack)]
#[dlpack(shape = [self.size.0, self.size.1, 3])]
struct Rgb {
    #[dlpack(data)]
    bytes: Vec<u8>,
    size: (u32, u32),
}

#[test]
fn bytes_with_a_size_and_a_constant() {
    let bytes = vec![0; 24];
    let data = start(&bytes);
    let image = Rgb {
        bytes,
        size: (2, 4),
    };
    exports(image, &plain(data, &[2, 4, 3], &[12, 3, 1], DataType::U8));
}

#[derive(DLPack)]
struct Strided<T: Element, const N: usize> {
    #[dlpack(data)]
    values: Box<[T]>,
    #[dlpack(shape)]
    shape: [usize; N],
    #[dlpack(strides)]
    strides: [isize; N],
}
assert_exports!(Strided<u16, 4>: u16, rank 4);

#[test]
fn shape_and_strides_of_a_const_generic_rank() {
    let values: Box<[u16]> = (0..12).collect();
    let data = start(&values);
    let turned = Strided {
        values,
        shape: [4, 3],
        strides: [1, 4],
    };
    exports(turned, &plain(data, &[4, 3], &[1, 4], DataType::U16));
    let backwards = Strided {
        values: Box::from([1_u8, 2, 3]),
        shape: [3],
        strides: [-1],
    };
    let reach = Error::OutOfBounds {
        first: -2,
        end: 1,
        len: 3,
    };
    assert_eq!(backwards.describe().unwrap_err(), reach);
}

#[derive(DLPack)]
struct Cloud {
    points: Arc<Vec<[f32; 3]>>,
}
assert_exports!(Cloud: f32, rank 2, readonly);

#[test]
fn shared_points() {
    let points = Arc::new(vec![[0.0, 1.0, 2.0]; 5]);
    let data = start(&points);
    exports(
        Cloud { points },
        &plain(data, &[5, 3], &[3, 1], DataType::F32).shared(),
    );
}

#[derive(DLPack)]
struct Batch {
    #[dlpack(tensor(shape = [_, 4]))]
    obs: Vec<f32>,
    #[dlpack(tensor)]
    actions: Vec<i64>,
    #[dlpack(tensor)]
    rewards: Vec<f32>,
    #[dlpack(tensor(name = "terminated", elem = bool))]
    done: Vec<u8>,
    #[dlpack(tensor)]
    logits: Box<[[f32; 2]]>,
    #[dlpack(tensor)]
    weights: Option<Vec<f64>>,
}

#[test]
fn columns_of_one_batch() -> Result<(), Error> {
    let batch = Arc::new(Batch {
        obs: vec![0.0; 8],
        actions: vec![3, 4],
        rewards: vec![1.0, -1.0],
        done: vec![0, 1],
        logits: Box::from([[0.1, 0.9]; 2]),
        weights: None,
    });
    let names = [
        "obs",
        "actions",
        "rewards",
        "terminated",
        "logits",
        "weights",
    ];
    assert_eq!(Batch::NAMES, names);
    let shapes = names.map(|name| {
        batch
            .to_dlpack_tensor(name)
            .map(|it| it.view().shape().to_vec())
    });
    let [obs, actions, rewards, terminated, logits, weights] = shapes;
    assert_eq!((obs?, actions?), (vec![2, 4], vec![2]));
    assert_eq!(
        (rewards?, terminated?, logits?),
        (vec![2], vec![2], vec![2, 2])
    );
    assert_eq!(weights.unwrap_err(), Error::Absent { name: "weights" });

    let actions = batch.to_dlpack_tensor("actions")?;
    assert_eq!(actions.view().as_ptr(), start(&batch.actions));
    assert!(actions.view().is_read_only());
    assert_eq!(batch.describe_terminated()?.dtype(), DataType::BOOL);
    assert_eq!(batch.describe_rewards()?.as_ptr(), start(&batch.rewards));
    assert_eq!(batch.describe_obs()?.as_ptr(), start(&batch.obs));
    assert_eq!(batch.describe_logits()?.as_ptr(), start(&batch.logits));
    assert_eq!(
        batch.describe_tensor("terminated")?.as_ptr(),
        start(&batch.done)
    );
    let unknown = batch.describe_tensor("reward").unwrap_err();
    assert!(matches!(unknown, Error::NoSuchTensor { known, .. } if known == Batch::NAMES));
    assert!(batch.describe_weights().is_err() && batch.weights.is_none());
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Float,
    Short,
}

impl From<Kind> for DataType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Float => Self::F32,
            Kind::Short => Self::I16,
        }
    }
}

enum Layout {
    Rows,
    Columns,
}

impl AsOrder for Layout {
    fn as_order(&self) -> Order {
        match self {
            Self::Rows => Order::C,
            Self::Columns => Order::F,
        }
    }
}

#[derive(DLPack)]
struct File {
    #[dlpack(data)]
    map: Mmap,
    #[dlpack(byte_offset)]
    header: u64,
    #[dlpack(dtype)]
    kind: Kind,
    #[dlpack(order)]
    layout: Layout,
    #[dlpack(shape)]
    dims: Vec<u64>,
}

#[test]
fn a_mapped_file_with_a_header() {
    let file = |kind, layout, dims: &[u64]| File {
        map: Mmap(vec![0; 8]),
        header: 16,
        kind,
        layout,
        dims: dims.to_vec(),
    };
    let rows = file(Kind::Float, Layout::Rows, &[3, 4]);
    let expected = plain(rows.map[16..].as_ptr(), &[3, 4], &[4, 1], DataType::F32).shared();
    exports(rows, &expected);
    let columns = file(Kind::Short, Layout::Columns, &[3, 4]);
    let expected = plain(columns.map[16..].as_ptr(), &[3, 4], &[1, 3], DataType::I16).shared();
    exports(columns, &expected);
    let outside = file(Kind::Float, Layout::Rows, &[3, 5])
        .describe()
        .unwrap_err();
    let reach = Error::OutOfBounds {
        first: 16,
        end: 76,
        len: 64,
    };
    assert_eq!(outside, reach);
}

#[derive(DLPack)]
struct Ragged {
    #[dlpack(data)]
    values: Vec<f64>,
    #[dlpack(shape)]
    shape: Vec<u64>,
}

#[test]
fn a_shape_of_any_rank() {
    for (shape, strides) in [
        (&[6][..], &[1][..]),
        (&[1, 2, 3], &[6, 3, 1]),
        (&[1; 8], &[1; 8]),
        (&[], &[]),
    ] {
        let values = vec![0.0; 6];
        let data = start(&values);
        let ragged = Ragged {
            values,
            shape: shape
                .iter()
                .map(|&extent: &i64| extent.unsigned_abs())
                .collect(),
        };
        exports(ragged, &plain(data, shape, strides, DataType::F64));
    }
    let huge = Ragged {
        values: vec![],
        shape: vec![u64::MAX],
    };
    let refused = Error::BadExtent {
        axis: 0,
        found: i128::from(u64::MAX),
    };
    assert_eq!(huge.describe().unwrap_err(), refused);
}

#[derive(DLPack)]
#[dlpack(shape = [batch.unwrap_or(1), _, 2])]
struct Tokens {
    #[dlpack(data)]
    ids: Vec<u32>,
    batch: Option<usize>,
}

#[test]
fn an_optional_batch() {
    for (batch, shape) in [(None, [1, 6, 2]), (Some(3), [3, 2, 2])] {
        let ids = vec![0; 12];
        let data = start(&ids);
        let strides = [shape[1] * 2, 2, 1];
        exports(
            Tokens { ids, batch },
            &plain(data, &shape, &strides, DataType::U32),
        );
    }
    let uneven = Tokens {
        ids: vec![0; 12],
        batch: Some(5),
    };
    let refused = Error::NotInferable {
        elements: 12,
        others: 10,
    };
    assert_eq!(uneven.describe().unwrap_err(), refused);
}

#[derive(DLPack)]
#[dlpack(shape = vec![2_usize; self.qubits])]
struct State {
    #[dlpack(data)]
    amplitudes: Vec<Complex<f64>>,
    qubits: usize,
}

#[test]
fn a_quantum_state() {
    let amplitudes = vec![Complex::new(0.5, -0.5); 8];
    let data = start(&amplitudes);
    let state = State {
        amplitudes,
        qubits: 3,
    };
    exports(state, &plain(data, &[2, 2, 2], &[4, 2, 1], DataType::C128));
}

#[derive(DLPack)]
enum Decoded {
    Gray8(Array2<u8>),
    Gray16(Array2<u16>),
    Rgb8 {
        #[dlpack(data)]
        pixels: Array3<u8>,
        gamma: f32,
    },
    Rgb16(Array3<u16>),
}

#[test]
fn an_enum_over_type_and_channels() {
    let gray = array![[1_u8, 2], [3, 4]];
    let data = gray.as_ptr();
    exports(
        Decoded::Gray8(gray),
        &plain(data, &[2, 2], &[2, 1], DataType::U8),
    );
    let gray = array![[1_u16, 2]];
    let data = gray.as_ptr().cast();
    exports(
        Decoded::Gray16(gray),
        &plain(data, &[1, 2], &[2, 1], DataType::U16),
    );
    let pixels = Array3::zeros((2, 1, 3));
    let data = pixels.as_ptr();
    let color = Decoded::Rgb8 { pixels, gamma: 2.2 };
    assert!(matches!(color, Decoded::Rgb8 { gamma, .. } if gamma > 2.0));
    exports(color, &plain(data, &[2, 1, 3], &[3, 3, 1], DataType::U8));
    let deep = Array3::<u16>::zeros((1, 2, 3));
    let data = deep.as_ptr().cast();
    exports(
        Decoded::Rgb16(deep),
        &plain(data, &[1, 2, 3], &[6, 3, 1], DataType::U16),
    );
}

#[derive(DLPack)]
struct Depth(Matrix<f32>);
assert_exports!(Depth: f32, rank 2);

#[test]
fn a_newtype_over_a_tensor() {
    let values = vec![0.0; 6];
    let data = start(&values);
    let depth = Depth(Matrix {
        values,
        rows: 3,
        cols: 2,
    });
    exports(depth, &plain(data, &[3, 2], &[2, 1], DataType::F32));
}

struct Entry {
    byte_offset: usize,
    dims: [u32; 2],
    dtype: DataType,
}

#[derive(DLPack)]
#[dlpack(
    data = &self.pool[..],
    byte_offset = self.entry.byte_offset,
    shape = self.entry.dims,
    dtype = self.entry.dtype,
)]
struct Slot {
    #[dlpack(owner)]
    pool: Arc<Pool>,
    entry: Entry,
}

#[test]
fn a_slot_of_a_shared_pool() -> Result<(), Error> {
    let pool = Arc::new(Pool(vec![0; 16]));
    let slot = Slot {
        pool: Arc::clone(&pool),
        entry: Entry {
            byte_offset: 32,
            dims: [4, 2],
            dtype: DataType::F16,
        },
    };
    let tensor = Arc::new(slot).to_dlpack()?;
    assert_eq!(
        Arc::strong_count(&pool),
        2,
        "the pool is kept, not the slot"
    );
    assert_eq!(tensor.view().as_ptr(), start(&pool[4..]));
    assert_eq!(tensor.view().shape(), [4, 2]);
    assert_eq!(tensor.view().dtype(), DataType::F16);
    drop(tensor);
    let entry = Entry {
        byte_offset: 0,
        dims: [16, 1],
        dtype: DataType::U64,
    };
    let expected = plain(start(&pool), &[16, 1], &[1, 1], DataType::U64).shared();
    exports(Slot { pool, entry }, &expected);
    Ok(())
}

#[derive(DLPack)]
#[dlpack(device = Device::cuda(self.ordinal), stream = StreamHandle::DEFAULT)]
struct OnGpu {
    #[dlpack(data)]
    slice: CudaSlice<f32>,
    context: Arc<CudaContext>,
    ordinal: i32,
}

#[test]
fn memory_of_a_device_with_its_context() {
    let on = |ordinal| OnGpu {
        slice: CudaSlice::new(vec![0.0; 4]),
        context: Arc::new(CudaContext),
        ordinal,
    };
    let first = on(0);
    assert_eq!(Arc::strong_count(&first.context), 1);
    let expected = plain(first.slice.address(), &[4], &[1], DataType::F32).on(Device::cuda(0));
    exports(first, &expected);
    let elsewhere = Error::DeviceConflict {
        data: Device::cuda(0),
        given: Device::cuda(1),
    };
    assert_eq!(on(1).describe().unwrap_err(), elsewhere);
}

#[derive(DLPack)]
#[dlpack(elem = f32, byte_offset = first)]
struct Metal {
    #[dlpack(data)]
    buffer: MtlBuffer,
    first: usize,
}

#[test]
fn a_handle_keeps_its_offset_beside_it() -> Result<(), Error> {
    let metal = Metal {
        buffer: MtlBuffer(vec![0; 64].into()),
        first: 16,
    };
    let handle = metal.buffer.handle();
    let tensor = Arc::new(metal).to_dlpack()?;
    assert_eq!(
        (tensor.view().as_ptr(), tensor.view().byte_offset()),
        (handle, 16)
    );
    assert_eq!(tensor.view().shape(), [12]);
    assert_eq!(tensor.view().device(), Device::metal(0));
    Ok(())
}

#[derive(Record)]
#[repr(C)]
struct Trade {
    time: u64,
    price: f64,
    size: u32,
    bid: bool,
    levels: [f32; 2],
}

#[derive(DLPack)]
struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
}

#[test]
fn fields_of_different_types_are_columns() -> Result<(), Error> {
    let trade = |time| Trade {
        time,
        price: 1.5,
        size: 10,
        bid: true,
        levels: [0.5, 0.25],
    };
    let tape = Arc::new(Tape {
        trades: vec![trade(1), trade(2), trade(3)],
    });
    assert_eq!(Tape::NAMES, ["time", "price", "size", "bid", "levels"]);
    let time = tape.to_dlpack_tensor("time")?;
    assert_eq!(time.view().to_vec::<u64>()?, [1, 2, 3]);
    assert_eq!(time.view().as_ptr(), start(&tape.trades));
    let row = i64::try_from(size_of::<Trade>()).expect("a small struct");
    for (name, dtype, shape, strides) in [
        ("time", DataType::U64, &[3][..], &[row / 8][..]),
        ("price", DataType::F64, &[3], &[row / 8]),
        ("size", DataType::U32, &[3], &[row / 4]),
        ("bid", DataType::BOOL, &[3], &[row]),
        ("levels", DataType::F32, &[3, 2], &[row / 4, 1]),
    ] {
        let column = tape.describe_tensor(name)?;
        assert_eq!(column.dtype(), dtype, "{name}");
        assert_eq!(
            (column.shape(), column.strides()),
            (shape, strides),
            "{name}"
        );
        assert!(column.is_read_only());
    }
    let last = &tape.trades[2];
    assert_eq!(
        (last.price, last.size, last.bid, last.levels),
        (1.5, 10, true, [0.5, 0.25])
    );
    Ok(())
}
