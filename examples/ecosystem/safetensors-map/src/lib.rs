//! The tensors of a safetensors file by name: each is a part of the map of the file, and nothing is read or copied.
//!
//! ```text
//! cd examples/ecosystem/safetensors-map && maturin develop --release && python weights.py
//! ```
#![expect(unsafe_code, reason = "maps a file, which others can change")]

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use dlpack_pyo3::{DLPack, DataType, Exported, Tensor};
use memmap2::Mmap;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};

/// One tensor, which keeps the map.
#[derive(DLPack)]
#[dlpack(data = &self.map[self.bytes.clone()])]
struct Weight {
    map: Arc<Mmap>,
    bytes: Range<usize>,
    #[dlpack(dtype)]
    dtype: DataType,
    #[dlpack(shape)]
    shape: Vec<usize>,
}

/// An open file. While it or a tensor of it lives, the file must not be written or truncated: write a new file beside it, and
/// rename that, as programs that save models should.
#[pyclass(frozen, module = "safetensors_map")]
struct Weights {
    map: Arc<Mmap>,
    /// Where the header ends.
    start: usize,
    header: Metadata,
}

#[pymethods]
impl Weights {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let file = File::open(path)?;
        // SAFETY: the documentation of this class requires that the file is not changed while the map lives. safetensors and
        // torch, which map such files too, require the same.
        let map = unsafe { Mmap::map(&file) }?;
        let header = SafeTensors::read_metadata(&map);
        let (length, header) = header.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (map, start) = (Arc::new(map), size_of::<u64>() + length);
        Ok(Self { map, start, header })
    }

    /// The names, in the order of the file.
    fn keys(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Exported<Weight>> {
        let info = self.header.info(name);
        let info = info.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let (first, end) = info.data_offsets;
        let weight = Weight {
            map: self.map.clone(),
            bytes: self.start + first..self.start + end,
            dtype: dtype(info.dtype)?,
            shape: info.shape.clone(),
        };
        Ok(Exported(weight))
    }
}

fn dtype(dtype: Dtype) -> PyResult<DataType> {
    Ok(match dtype {
        Dtype::F16 => DataType::F16,
        Dtype::BF16 => DataType::BF16,
        Dtype::F32 => DataType::F32,
        Dtype::F64 => DataType::F64,
        Dtype::U8 => DataType::U8,
        Dtype::I32 => DataType::I32,
        Dtype::I64 => DataType::I64,
        Dtype::F8_E4M3 => DataType::F8_E4M3FN,
        Dtype::F8_E5M2 => DataType::F8_E5M2,
        other => return Err(PyTypeError::new_err(format!("tensors of {other:?}"))),
    })
}

/// What `import safetensors_map` gets from Rust.
#[pymodule(name = "safetensors_map", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::{Tensor, Weights};
}
