//! A container of this crate as the memory of a tensor, without a line of `unsafe`.
//!
//! `Ring` implements `Buffer`, so it can be a `data` field. `Spectrogram` implements `DLPack` by hand.
#![forbid(unsafe_code)]

mod ring;
mod spectrogram;

use std::sync::Arc;

use dlpack_core::{DLPack, Error};

use crate::ring::Ring;
use crate::spectrogram::Spectrogram;

/// Frames of a sensor, the newest of a fixed number.
#[derive(DLPack)]
#[dlpack(shape = [_, channels])]
struct Sensor {
    #[dlpack(data, writable)]
    frames: Ring<f32>,
    channels: usize,
}

fn main() -> Result<(), Error> {
    let mut frames = Ring::new(6);
    for value in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] {
        frames.push(value);
    }
    let before = frames.as_slice().as_ptr();
    let tensor = Sensor {
        frames,
        channels: 2,
    }
    .into_dlpack()?;
    let view = tensor.view();
    println!(
        "sensor: shape {:?}, strides {:?}",
        view.shape(),
        view.strides()
    );
    assert_eq!(view.shape(), [3, 2]);
    assert_eq!(view.as_ptr().cast(), before);
    assert_eq!(view.as_slice::<f32>()?, [7.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(!view.is_read_only());

    let spectrogram = Arc::new(Spectrogram::new(2, 3));
    let tensor = spectrogram.to_dlpack()?;
    let view = tensor.view();
    println!(
        "spectrogram: shape {:?}, strides {:?}",
        view.shape(),
        view.strides()
    );
    assert_eq!((view.shape(), view.strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(view.to_vec::<f32>()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert!(view.is_read_only());

    let error = Spectrogram::torn().into_dlpack().unwrap_err();
    println!("a shape that its memory does not hold: {error}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_it_shows_is_true() {
        super::main().unwrap();
    }
}
