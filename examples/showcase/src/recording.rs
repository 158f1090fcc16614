//! A file: a header that says what the rest is, and the rest as a tensor.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use dlpack_pyo3::{DLPack, DataType, dlpack_pymethods};
use memmap2::{Mmap, MmapMut};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// "RECORDED", the letter of a data type, seven bytes of nothing, frames and channels as 64-bit integers, and zeros:
/// 64 bytes in all, so that the samples lie where jax and TensorFlow want them.
const HEADER: usize = 64;

/// Frames of channels, in whatever numbers the file holds.
#[pyclass(frozen, module = "dlpack_showcase")]
#[derive(DLPack)]
#[dlpack(data = &self.map[HEADER..])]
pub struct Recording {
    map: Mmap,
    #[dlpack(dtype)]
    dtype: DataType,
    #[dlpack(shape)]
    shape: [u64; 2],
}

#[dlpack_pymethods]
#[pymethods]
impl Recording {
    /// Opens a file.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let map = map(path)?;
        let header = map
            .get(..HEADER)
            .and_then(|bytes| bytes.strip_prefix(b"RECORDED"));
        let header = header.ok_or_else(|| PyValueError::new_err("this is no recording"))?;
        let dtype = match header[0] {
            b'f' => DataType::F32,
            b'd' => DataType::F64,
            b'h' => DataType::I16,
            other => return Err(PyValueError::new_err(format!("unknown data type {other}"))),
        };
        // Nothing compares the shape with the length of the file here: an export does.
        let shape = [number(&header[8..]), number(&header[16..])];
        Ok(Self { map, dtype, shape })
    }
}

fn number(bytes: &[u8]) -> u64 {
    let (first, _) = bytes.split_first_chunk().expect("the header is longer");
    u64::from_le_bytes(*first)
}

/// The file as a map. `Mmap::map(&file)` would spare the reading, and is `unsafe`, as others may cut the file
/// while it is mapped: a promise that only you can make of your files. The rest of this module would stay as it is.
fn map(path: PathBuf) -> io::Result<Mmap> {
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut map = MmapMut::map_anon(length.max(1))?;
    file.read_exact(&mut map[..length])?;
    map.make_read_only()
}
