//! The program that the README begins with; `cargo xtask ci` compares the two.

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
        pixels: vec![0.5; 480 * 640 * 3],
        dims: [480, 640, 3],
    };
    let tensor = image.into_dlpack()?; // moved in, not copied
    let view = tensor.view();
    assert_eq!(view.shape(), [480, 640, 3]);
    assert_eq!(view.as_slice::<f32>()?[7], 0.5);
    Ok(())
}
