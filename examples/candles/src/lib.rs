//! Market candles as columns: trades in, a table of rows in Rust, and each field of a row an array for pandas.
//!
//! ```text
//! cd examples/candles && maturin develop --release && python market.py
//! ```
#![forbid(unsafe_code)]

use dlpack_pyo3::{DLPack, Record, View, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What happened between `time` and the next.
#[derive(Record)]
#[repr(C)]
struct Candle {
    /// Nanoseconds since 1970.
    time: i64,
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    volume: f64,
    trades: u64,
}

/// One candle after another: `candles.open` is an array over the field of all of them, and so are the others.
#[pyclass(frozen, module = "candles")]
#[derive(DLPack)]
struct Candles {
    #[dlpack(columns)]
    rows: Vec<Candle>,
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl Candles {
    /// The candles of trades in the order of their times, each `period` long. A period without trades has none.
    #[new]
    fn new(
        py: Python<'_>,
        times: View<i64, 1>,
        prices: View<f64, 1>,
        sizes: View<f64, 1>,
        period: i64,
    ) -> PyResult<Self> {
        let counts = [times.len(), prices.len(), sizes.len()];
        if counts != [times.len(); 3] || period <= 0 {
            let text = format!("{counts:?} times, prices and sizes, of {period} ns");
            return Err(PyValueError::new_err(text));
        }
        Ok(py.detach(|| {
            let trades = times.iter().zip(&*prices).zip(&*sizes);
            let mut rows: Vec<Candle> = Vec::new();
            for ((time, price), size) in trades {
                let time = time.div_euclid(period) * period;
                match rows.last_mut() {
                    Some(candle) if candle.time == time => candle.add(price, size),
                    _ => rows.push(Candle::new(time, price, size)),
                }
            }
            Self { rows }
        }))
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }
}

impl Candle {
    fn new(time: i64, price: f64, volume: f64) -> Self {
        Self {
            time,
            open: price,
            high: price,
            low: price,
            close: price,
            volume,
            trades: 1,
        }
    }

    fn add(&mut self, price: f64, size: f64) {
        self.high = self.high.max(price);
        self.low = self.low.min(price);
        self.close = price;
        self.volume += size;
        self.trades += 1;
    }
}

/// What `import candles` gets from Rust.
#[pymodule(name = "candles")]
mod module {
    #[pymodule_export]
    use super::Candles;
}
