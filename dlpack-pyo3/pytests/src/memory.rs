//! Bytes of any data type: sizes, and a fill pattern with predictable values.

use dlpack_pyo3::DataType;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

const KNOWN: [DataType; 29] = [
    DataType::BOOL,
    DataType::I8,
    DataType::I16,
    DataType::I32,
    DataType::I64,
    DataType::I128,
    DataType::U8,
    DataType::U16,
    DataType::U32,
    DataType::U64,
    DataType::U128,
    DataType::F16,
    DataType::F32,
    DataType::F64,
    DataType::BF16,
    DataType::C32,
    DataType::C64,
    DataType::C128,
    DataType::F8_E3M4,
    DataType::F8_E4M3,
    DataType::F8_E4M3B11FNUZ,
    DataType::F8_E4M3FN,
    DataType::F8_E4M3FNUZ,
    DataType::F8_E5M2,
    DataType::F8_E5M2FNUZ,
    DataType::F8_E8M0FNU,
    DataType::F6_E2M3FN,
    DataType::F6_E3M2FN,
    DataType::F4_E2M1FN,
];

/// The data type with this name.
pub(crate) fn parse(name: &str, lanes: u16, padded: bool) -> PyResult<DataType> {
    let dtype = KNOWN.iter().find(|dtype| dtype.to_string() == name);
    let Some(dtype) = dtype else {
        return Err(PyValueError::new_err(format!("no data type `{name}`")));
    };
    let dtype = dtype.with_lanes(lanes);
    Ok(if padded { dtype.padded() } else { dtype })
}

/// `items` values of `dtype`: item `i` is `i % 101`, if the type has such numbers. Floats of 8 bits and fewer get these bits, a
/// `bool` is true if `i` is odd.
pub(crate) fn filled(dtype: DataType, items: usize) -> Vec<u8> {
    let scalars = items * usize::from(dtype.lanes());
    let Some(bytes) = scalar_bytes(dtype) else {
        return packed(dtype.bits(), scalars);
    };
    (0..scalars)
        .flat_map(|index| scalar(dtype, bytes, index))
        .collect()
}

/// The bytes of one lane; `None` if several share a byte.
fn scalar_bytes(dtype: DataType) -> Option<usize> {
    if dtype.is_padded() {
        return Some(1);
    }
    (dtype.bits() % 8 == 0).then(|| usize::from(dtype.bits()) / 8)
}

fn scalar(dtype: DataType, bytes: usize, index: usize) -> Vec<u8> {
    let value = u8::try_from(index % 101).unwrap_or(0);
    let mut scalar = match dtype.with_lanes(1) {
        DataType::BOOL => vec![value % 2],
        DataType::F16 => half(value, 10, 15).to_ne_bytes().to_vec(),
        DataType::BF16 => half(value, 7, 127).to_ne_bytes().to_vec(),
        DataType::F32 => f32::from(value).to_ne_bytes().to_vec(),
        DataType::F64 => f64::from(value).to_ne_bytes().to_vec(),
        DataType::C32 => half(value, 10, 15).to_ne_bytes().to_vec(),
        DataType::C64 => f32::from(value).to_ne_bytes().to_vec(),
        DataType::C128 => f64::from(value).to_ne_bytes().to_vec(),
        narrow if narrow.is_padded() => vec![value % (1 << narrow.bits())],
        _ if cfg!(target_endian = "big") => {
            let mut scalar = vec![0; bytes];
            scalar[bytes - 1] = value;
            scalar
        }
        _ => vec![value],
    };
    scalar.resize(bytes, 0);
    scalar
}

/// A small integer as a float of 16 bits.
fn half(value: u8, mantissa: u32, bias: u32) -> u16 {
    if value == 0 {
        return 0;
    }
    let exponent = value.ilog2();
    let fraction = (u32::from(value) - (1 << exponent)) << (mantissa - exponent);
    u16::try_from(((exponent + bias) << mantissa) | fraction).unwrap_or(0)
}

/// Values of `bits` bits one after another, counted from the lowest bit of each byte.
fn packed(bits: u8, items: usize) -> Vec<u8> {
    let bits = usize::from(bits);
    let mut bytes = vec![0_u8; (items * bits).div_ceil(8)];
    for index in 0..items {
        let value = index % 101 % (1 << bits);
        for bit in 0..bits {
            let at = index * bits + bit;
            if value >> bit & 1 == 1 {
                bytes[at / 8] |= 1 << (at % 8);
            }
        }
    }
    bytes
}

/// The strides of a row-major tensor.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

/// One past the last item of a tensor.
pub(crate) fn reach(shape: &[i64], strides: &[i64], offset: i64) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let mut last = offset;
    for (extent, stride) in shape.iter().zip(strides) {
        if *stride > 0 {
            last = last.saturating_add((extent - 1).saturating_mul(*stride));
        }
    }
    usize::try_from(last.saturating_add(1)).unwrap_or(0)
}

/// The bytes of the items in row-major order, for items of whole bytes.
pub(crate) fn gathered(
    bytes: &[u8],
    itemsize: usize,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
) -> Vec<u8> {
    let mut starts = vec![offset];
    for (extent, stride) in shape.iter().zip(strides) {
        starts = starts
            .iter()
            .flat_map(|start| (0..*extent).map(move |index| start + index * stride))
            .collect();
    }
    let item = |start: &i64| {
        let at = usize::try_from(*start).unwrap_or(usize::MAX) * itemsize;
        bytes[at..at + itemsize].to_vec()
    };
    starts.iter().flat_map(item).collect()
}
