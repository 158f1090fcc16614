//! A picture: bytes that know how they are cut, on the way out and on the way in.

use dlpack_pyo3::{DLPack, FromDLPack, Imported, Like, Prototype, View, ViewMut, dlpack_pymethods};
use pyo3::prelude::*;

/// A picture of `height` rows, `width` columns and three colours.
#[pyclass(frozen, module = "dlpack_showcase")]
#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [height, width, 3])]
pub struct Image {
    #[dlpack(data)]
    pixels: Vec<u8>,
    height: usize,
    width: usize,
}

#[dlpack_pymethods]
#[pymethods]
impl Image {
    /// The valley of the seahorses, in the Mandelbrot set.
    #[new]
    fn new(height: u16, width: u16) -> Self {
        let (height, width) = (usize::from(height), usize::from(width));
        let scale = 0.0055 / width.max(1) as f64;
        let pixels = (0..height * width).flat_map(|index| {
            let across = (index % width) as f64 - width as f64 / 2.0;
            let down = (index / width) as f64 - height as f64 / 2.0;
            colour(escape(-0.7452 + across * scale, 0.1128 + down * scale))
        });
        Self {
            pixels: pixels.collect(),
            height,
            width,
        }
    }

    /// A copy of a picture of any producer of `(h, w, 3)` bytes, with any strides.
    #[staticmethod]
    fn from_array(array: Imported<Self>) -> Self {
        array.0
    }
}

/// The mean of all bytes of a picture of any producer.
#[pyfunction]
pub(crate) fn brightness(image: Imported<Image>) -> f64 {
    let pixels = image.0.pixels;
    pixels.iter().map(|&byte| f64::from(byte)).sum::<f64>() / pixels.len() as f64
}

/// A picture with left and right exchanged: an array of the library that the picture is an array of.
#[pyfunction]
pub(crate) fn mirrored(image: Prototype<View<[u8; 3], 2>>) -> PyResult<Like<ViewMut<[u8; 3], 2>>> {
    let [height, width] = image.shape();
    let mut mirrored = Like::zeros(&image, [height, width])?;
    for y in 0..height {
        for x in 0..width {
            mirrored.set([y, width - 1 - x], image.at([y, x]));
        }
    }
    Ok(mirrored)
}

/// How long the point stays near, as a smooth number; nothing if it never leaves.
fn escape(x: f64, y: f64) -> Option<f64> {
    let (mut a, mut b) = (0.0_f64, 0.0_f64);
    for count in 0_u32..1000 {
        let (aa, bb) = (a * a, b * b);
        if aa + bb > 256.0 {
            return Some(f64::from(count) - (aa + bb).log2().log2());
        }
        (a, b) = (aa - bb + x, 2.0 * a * b + y);
    }
    None
}

fn colour(escape: Option<f64>) -> [u8; 3] {
    let Some(time) = escape else {
        return [8, 6, 16];
    };
    let phase = 2.6 * (1.0 + time.max(0.0)).ln();
    [1.4, 0.75, 0.2].map(|shift| (127.5 - 127.5 * (phase + shift).cos()).round() as u8)
}
