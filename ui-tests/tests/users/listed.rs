//! The structs of "Some of them, annotated", as they stand there.

use std::sync::Arc;

use bytes::Bytes;
use dlpack_core::{
    DLPack, DataType, Device, Element, Error, ExportRequest, StreamHandle, assert_exports,
};
use half::bf16;
use ndarray::{Array1, Array2, array};

use crate::stand_ins::{CudaSlice, CudaStream, ScalarBuffer, Storage, faer};
use crate::{exports, plain, start};

#[derive(DLPack)]
struct Image<const C: usize>(Tensor<3>);

#[derive(DLPack)]
#[dlpack(
    // SAFETY: the storage keeps its memory, where it is, as long as it lives; no code writes to it.
    unsafe(data = self.storage.as_ptr(), len = self.storage.len())
)]
struct Tensor<const N: usize> {
    storage: Storage,
    #[dlpack(shape)]
    shape: [usize; N],
    #[dlpack(strides)]
    strides: [usize; N],
}

#[test]
fn a_newtype_over_a_const_generic_rank() {
    let storage = Storage::new(&[0.5; 24]);
    let data = storage.as_ptr().cast();
    let tensor = Tensor {
        storage,
        shape: [2, 4, 3],
        strides: [12, 1, 4],
    };
    let expected = plain(data, &[2, 4, 3], &[12, 1, 4], DataType::F32).shared();
    exports(Image::<3>(tensor), &expected);
}

#[derive(Element)]
#[repr(C)]
struct Candle {
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    volume: f64,
}

#[derive(DLPack)]
struct Series {
    #[dlpack(data, owner)]
    candles: Arc<[Candle]>,
}
assert_exports!(Series: f64, rank 2, readonly);

#[test]
fn shared_records_of_one_scalar() -> Result<(), Error> {
    let candle = |at: f64| Candle {
        open: at,
        high: at + 1.0,
        low: at - 1.0,
        close: at + 0.5,
        volume: 100.0,
    };
    let candles: Arc<[Candle]> = Arc::new([candle(10.0), candle(11.0)]);
    let series = Arc::new(Series {
        candles: Arc::clone(&candles),
    });
    let tensor = series.to_dlpack()?;
    let first = [10.0, 11.0, 9.0, 10.5, 100.0];
    assert_eq!(tensor.view().to_vec::<f64>()?[..5], first);
    // The owner is the slice, and the struct is free.
    assert_eq!(Arc::strong_count(&series), 1);
    assert_eq!(Arc::strong_count(&candles), 3);
    drop(tensor);
    assert_eq!(Arc::strong_count(&candles), 2);
    let Candle {
        open, high, low, ..
    } = &candles[1];
    assert_eq!((*open, *high, *low), (11.0, 12.0, 10.0));
    assert_eq!((candles[1].close, candles[1].volume), (11.5, 100.0));

    let data = start(&candles);
    let expected = plain(data, &[2, 5], &[5, 1], DataType::F64).shared();
    drop(series);
    exports(Series { candles }, &expected);
    Ok(())
}

#[derive(DLPack)]
struct PyFaer {
    mat: faer::Mat<f64>,
}

#[test]
fn a_matrix_with_its_own_strides() {
    let mat = faer::Mat::<f64>::zeros(3, 2);
    let data = mat.as_ptr().cast();
    exports(
        PyFaer { mat },
        &plain(data, &[3, 2], &[1, 4], DataType::F64),
    );
}

#[derive(DLPack)]
#[dlpack(shape = [nrows, ncols], order = "F")]
struct ColMajor {
    #[dlpack(data)]
    v: Vec<f64>,
    nrows: usize,
    ncols: usize,
}
assert_exports!(ColMajor: f64, rank 2);

#[test]
fn a_matrix_by_columns() {
    let v = vec![0.0; 6];
    let data = start(&v);
    let matrix = ColMajor {
        v,
        nrows: 2,
        ncols: 3,
    };
    exports(matrix, &plain(data, &[2, 3], &[1, 2], DataType::F64));
}

#[derive(DLPack)]
enum Audio {
    Mono(Array1<f32>),
    Multi(Array2<f32>),
    I16(Array2<i16>),
    #[dlpack(skip)]
    Empty,
}

#[test]
fn a_variant_is_chosen_at_run_time() {
    let mono = array![0.0, 1.0];
    let data = mono.as_ptr().cast();
    exports(Audio::Mono(mono), &plain(data, &[2], &[1], DataType::F32));
    let multi = array![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]].reversed_axes();
    let data = multi.as_ptr().cast();
    exports(
        Audio::Multi(multi),
        &plain(data, &[2, 3], &[1, 2], DataType::F32),
    );
    let ints = array![[0_i16, 1]];
    let data = ints.as_ptr().cast();
    exports(
        Audio::I16(ints),
        &plain(data, &[1, 2], &[2, 1], DataType::I16),
    );
    let skipped = Error::Skipped {
        name: "Audio",
        variant: "Empty",
    };
    assert_eq!(Audio::Empty.into_dlpack().unwrap_err(), skipped);
}

#[derive(DLPack)]
#[dlpack(shape = [height, width, 3], byte_strides = [linesize, _, _])]
struct Frame {
    #[dlpack(data)]
    data: Bytes,
    height: u32,
    width: u32,
    linesize: usize,
}

#[test]
fn padded_rows_with_a_pitch_in_bytes() -> Result<(), Error> {
    let data = Bytes::from(vec![7_u8; 4 * 64]);
    let pointer = start(&data);
    let frame = |linesize| Frame {
        data: data.clone(),
        height: 4,
        width: 20,
        linesize,
    };
    let expected = plain(pointer, &[4, 20, 3], &[64, 3, 1], DataType::U8).shared();
    exports(frame(64), &expected);
    // The last row needs no padding behind it, but has to be there.
    assert_eq!(frame(65).describe()?.strides(), [65, 3, 1]);
    let found = frame(66).describe().unwrap_err();
    let reach = Error::OutOfBounds {
        first: 0,
        end: 3 * 66 + 60,
        len: 256,
    };
    assert_eq!(found, reach);
    Ok(())
}

#[derive(DLPack)]
#[dlpack(shape = [_, dim])]
struct Vectors {
    #[dlpack(data, owner)]
    values: ScalarBuffer<f32>,
    dim: i32,
}

#[test]
fn a_cheap_handle_that_derefs_is_an_owner() -> Result<(), Error> {
    let values = ScalarBuffer::from(vec![0.0_f32; 12]);
    let data = start(&values);
    let vectors = Arc::new(Vectors { values, dim: 4 });
    let tensor = vectors.to_dlpack()?;
    assert_eq!(Arc::strong_count(&vectors), 1, "only the handle was cloned");
    drop(vectors);
    assert_eq!(tensor.view().as_ptr(), data);
    assert_eq!(tensor.view().as_slice::<f32>()?, [0.0; 12]);
    drop(tensor);

    let values = ScalarBuffer::from(vec![0.0_f32; 12]);
    let expected = plain(start(&values), &[3, 4], &[4, 1], DataType::F32).shared();
    exports(
        Vectors {
            values: values.clone(),
            dim: 4,
        },
        &expected,
    );
    let negative = Vectors { values, dim: -4 };
    let refused = Error::BadExtent { axis: 1, found: -4 };
    assert_eq!(negative.describe().unwrap_err(), refused);
    Ok(())
}

#[derive(DLPack)]
struct Page {
    #[dlpack(data)]
    kv: CudaSlice<bf16>,
    #[dlpack(shape)]
    dims: (usize, usize, usize),
    #[dlpack(stream)]
    s: Arc<CudaStream>,
}

#[test]
fn memory_of_a_device_with_its_stream() -> Result<(), Error> {
    let kv = CudaSlice::new(vec![bf16::ONE; 24]);
    let data = kv.address();
    let page = Page {
        kv,
        dims: (2, 3, 4),
        s: Arc::new(CudaStream(StreamHandle::DEFAULT)),
    };
    let described = page.describe()?;
    assert_eq!(described.stream(), Some(StreamHandle::DEFAULT.into()));
    drop(described);
    let expected = plain(data, &[2, 3, 4], &[12, 4, 1], DataType::BF16).on(Device::cuda(0));
    exports(page, &expected);

    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let page = Page {
        kv: CudaSlice::new(vec![bf16::ONE]),
        dims: (1, 1, 1),
        s: Arc::new(CudaStream(StreamHandle::DEFAULT)),
    };
    assert!(
        page.into_dlpack_with(&request).is_err(),
        "no copy of a device's memory yet"
    );
    Ok(())
}
