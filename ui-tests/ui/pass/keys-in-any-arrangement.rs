//! Keys in one attribute or several, with trailing commas, over fields that are called like keys.

use dlpack_core::{DLPack, Error, Order};

const F: Order = Order::F;

#[derive(DLPack)]
#[dlpack(shape = [shape, data,],)]
#[dlpack()]
#[dlpack(order = self::F)]
struct Image {
    #[dlpack(data,)]
    #[dlpack(writable)]
    pixels: Vec<f32>,
    shape: usize,
    data: usize,
}

fn main() -> Result<(), Error> {
    let image = Image {
        pixels: vec![0.0; 6],
        shape: 2,
        data: 3,
    };
    assert_eq!(image.describe()?.strides(), [1, 2]);
    Ok(())
}
