//! Pixels of one data type, and of one that is known at run time.

use dlpack_pyo3::element::{AnyBits, Plain};
use dlpack_pyo3::{DLPack, Error, FromDLPack, SharedBuffer};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// Pixels in memory of Rust, or of an array that the buffer adopted. An export holds the buffer, and not the object.
#[derive(DLPack, FromDLPack)]
pub(crate) struct Pixels<T: Plain + AnyBits> {
    #[dlpack(data, owner)]
    buffer: SharedBuffer<T>,
    #[dlpack(shape)]
    size: [usize; 3],
    #[dlpack(strides)]
    strides: [usize; 3],
}

/// The first variant whose data type and rank fit is imported.
#[derive(DLPack, FromDLPack)]
pub(crate) enum AnyPixels {
    U8(Pixels<u8>),
    U16(Pixels<u16>),
    F32(Pixels<f32>),
    F64(Pixels<f64>),
}

/// A copy of the elements in row-major order, whatever the strides of the array are.
#[derive(FromDLPack)]
pub(crate) struct Copied<T: Plain> {
    #[dlpack(data)]
    samples: Vec<T>,
    #[dlpack(shape)]
    size: [usize; 3],
}

#[derive(FromDLPack)]
pub(crate) enum AnyCopied {
    U8(Copied<u8>),
    U16(Copied<u16>),
    F32(Copied<f32>),
    F64(Copied<f64>),
}

impl From<AnyCopied> for AnyPixels {
    fn from(copied: AnyCopied) -> Self {
        match copied {
            AnyCopied::U8(copied) => Self::U8(copied.into()),
            AnyCopied::U16(copied) => Self::U16(copied.into()),
            AnyCopied::F32(copied) => Self::F32(copied.into()),
            AnyCopied::F64(copied) => Self::F64(copied.into()),
        }
    }
}

impl<T: Sample> From<Copied<T>> for Pixels<T> {
    fn from(copied: Copied<T>) -> Self {
        Self::packed(copied.samples.into(), copied.size)
    }
}

/// Runs the expression with the pixels of any variant.
macro_rules! with_pixels {
    ($any:expr, $pixels:ident => $run:expr) => {
        match $any {
            AnyPixels::U8($pixels) => $run,
            AnyPixels::U16($pixels) => $run,
            AnyPixels::F32($pixels) => $run,
            AnyPixels::F64($pixels) => $run,
        }
    };
}
pub(crate) use with_pixels;

/// A number of a pixel: `as` rounds towards zero, and saturates.
pub(crate) trait Sample: Plain + AnyBits {
    fn to_f64(self) -> f64;
    fn from_f64(number: f64) -> Self;
}

macro_rules! samples {
    ($($sample:ty)*) => {$(
        impl Sample for $sample {
            fn to_f64(self) -> f64 {
                self.into()
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
            fn from_f64(number: f64) -> Self {
                number as Self
            }
        }
    )*};
}
samples! { u8 u16 f32 f64 }

/// Pixels that are read or written at a time.
const BATCH: usize = 1024;

impl<T: Sample> Pixels<T> {
    pub(crate) fn black(size: [usize; 3]) -> Result<Self, Error> {
        let count = size
            .iter()
            .try_fold(1_usize, |count, extent| count.checked_mul(*extent));
        let bytes = usize::MAX;
        let buffer = SharedBuffer::zeroed(count.ok_or(Error::OutOfMemory { bytes })?)?;
        Ok(Self::packed(buffer, size))
    }

    fn packed(buffer: SharedBuffer<T>, size: [usize; 3]) -> Self {
        let [_, width, channels] = size;
        let strides = [width * channels, channels, 1];
        Self {
            buffer,
            size,
            strides,
        }
    }

    pub(crate) fn size(&self) -> [usize; 3] {
        self.size
    }

    pub(crate) fn mean(&self) -> f64 {
        let mut sum = 0.0;
        self.for_each_batch(|_, batch| {
            sum += batch.iter().map(|sample| sample.to_f64()).sum::<f64>()
        });
        sum / self.buffer.len() as f64
    }

    pub(crate) fn scale(&self, factor: f64) -> PyResult<()> {
        if self.buffer.is_read_only() {
            return Err(PyValueError::new_err("the image is over a read-only array"));
        }
        self.for_each_batch(|start, batch| {
            for sample in &mut *batch {
                *sample = T::from_f64(sample.to_f64() * factor);
            }
            self.buffer.set_range(start, batch);
        });
        Ok(())
    }

    /// The memory may be written by Python at any time. So samples are copied to the stack, and computed with there.
    fn for_each_batch(&self, mut run: impl FnMut(usize, &mut [T])) {
        let mut batch = [T::from_f64(0.0); BATCH];
        for start in (0..self.buffer.len()).step_by(BATCH) {
            let batch = &mut batch[..BATCH.min(self.buffer.len() - start)];
            self.buffer.get_range(start, batch);
            run(start, batch);
        }
    }
}
