//! A class whose data type is chosen while the program runs.

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Sound, in the numbers that it came in. `Samples.I16([1, 2])` makes one too.
#[pyclass(frozen, module = "dlpack_showcase")]
#[derive(DLPack)]
pub enum Samples {
    F32 { values: Vec<f32> },
    I16 { values: Vec<i16> },
    U8 { values: Vec<u8> },
}

#[dlpack_pymethods]
#[pymethods]
impl Samples {
    /// A chord of `count` samples, as "float32", "int16" or "uint8".
    #[staticmethod]
    fn chord(count: u32, dtype: &str) -> PyResult<Self> {
        let wave = (0..count).map(|n| {
            let time = f64::from(n) / 44_100.0 * core::f64::consts::TAU;
            [261.63, 329.63, 392.0]
                .map(|tone| (tone * time).sin() / 3.0)
                .iter()
                .sum::<f64>()
        });
        Ok(match dtype {
            "float32" => Self::F32 {
                values: wave.map(|y| y as f32).collect(),
            },
            "int16" => Self::I16 {
                values: wave.map(|y| (y * 32_767.0) as i16).collect(),
            },
            "uint8" => Self::U8 {
                values: wave.map(|y| (128.0 + y * 127.0) as u8).collect(),
            },
            other => return Err(PyValueError::new_err(format!("no samples are of {other}"))),
        })
    }
}
