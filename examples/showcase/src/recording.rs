//! A file: a header that says what the rest is, and the rest as a tensor, in the file's own memory.
#![expect(unsafe_code, reason = "maps a file, which others can change")]

use std::fs::File;
use std::io;
use std::path::PathBuf;

use dlpack_pyo3::{DLPack, DataType, dlpack_pymethods};
use memmap2::Mmap;
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
    /// Maps a file. Its pages are read when an array over them is read. While the recording or such an array lives, the file
    /// must not be written or truncated: replace it by renaming a new file. The old one then stays as it is until the last
    /// array is gone.
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

/// The one line of this package that the compiler cannot check. The caller of `Recording.__new__` guarantees what its documentation
/// says; `numpy.memmap` requires the same, but does not say so.
fn map(path: PathBuf) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the documentation of `new` requires that no code writes or truncates the file while the map lives. The map keeps
    // its pages when the file is closed, renamed or removed. The requirement includes other processes, which share the pages:
    // their writes would change the bytes under a `&[u8]`, and a truncated file would end this process.
    unsafe { Mmap::map(&file) }
}
