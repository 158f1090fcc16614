//! Enums: one with tensors in its variants, and one that is a data type.

use dlpack_pyo3::{DLPack, DataType, dlpack_pymethods};
use pyo3::prelude::*;

/// The data type depends on the variant.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) enum Audio {
    /// Samples from -1 to 1.
    Float { samples: Vec<f32> },
    /// Samples of 16 bits.
    Short { samples: Vec<i16> },
    /// Nothing to export.
    #[dlpack(skip)]
    Silence {},
}

#[dlpack_pymethods]
#[pymethods]
impl Audio {}

/// The data type of a [`Raw`].
#[pyclass(eq, eq_int, from_py_object, module = "dlpack_probe")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float32,
    Int16,
    Bool,
}

impl From<Kind> for DataType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Float32 => Self::F32,
            Kind::Int16 => Self::I16,
            Kind::Bool => Self::BOOL,
        }
    }
}

/// Bytes whose data type is given by a Python enum.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Raw {
    #[dlpack(data)]
    bytes: Vec<u8>,
    #[dlpack(dtype)]
    kind: Kind,
}

#[dlpack_pymethods]
#[pymethods]
impl Raw {
    #[new]
    fn new(bytes: Vec<u8>, kind: Kind) -> Self {
        Self { bytes, kind }
    }
}
