//! A type that describes itself: time runs along its memory, yet consumers see frequency first.

use dlpack_core::{DLPack, Descriptor, Error, Loan, Parts};

/// Magnitudes, one row per moment.
pub(crate) struct Spectrogram {
    magnitudes: Vec<f32>,
    moments: usize,
    frequencies: usize,
}

impl Spectrogram {
    pub(crate) fn new(moments: usize, frequencies: usize) -> Self {
        let magnitudes = (0_u8..)
            .map(f32::from)
            .take(moments * frequencies)
            .collect();
        Self {
            magnitudes,
            moments,
            frequencies,
        }
    }

    /// One that lost a value: its numbers promise more than its memory holds.
    pub(crate) fn torn() -> Self {
        let mut torn = Self::new(2, 3);
        torn.magnitudes.pop();
        torn
    }
}

impl DLPack for Spectrogram {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new()
            .shape([self.frequencies, self.moments])
            .strides([1, self.frequencies])
            .describe(Loan::from(&self.magnitudes[..]))
    }
}
