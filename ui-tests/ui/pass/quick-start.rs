//! The first example of the documentation, in a crate that forbids `unsafe`.
#![forbid(unsafe_code)]

use dlpack_core::{DLPack, Error};

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

fn main() -> Result<(), Error> {
    let image = Image {
        pixels: vec![0.0; 24],
        dims: [2, 4, 3],
    };
    let tensor = image.into_dlpack()?;
    assert_eq!(tensor.view().shape(), [2, 4, 3]);
    Ok(())
}
