//! An annotated image, moved into a tensor, and the same image shared with one.

use std::sync::Arc;

use dlpack_core::{DLPack, Error};

use crate::show::{facts, numbers, picture};

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

pub(crate) fn main() -> Result<(), Error> {
    let image = Image {
        pixels: (0_u8..12).map(f32::from).collect(),
        dims: [3, 4],
    };
    let before = image.pixels.as_ptr().addr();

    let tensor = image.into_dlpack()?;
    let moved = facts!(tensor.view(), f32);
    numbers("An image, moved into a tensor", &moved, before);
    picture(&moved, before, 12, 4);
    assert_eq!(
        (&moved.shape[..], &moved.strides[..]),
        (&[3, 4][..], &[4, 1][..])
    );
    assert_eq!(moved.address, before);
    assert!(
        !moved.read_only,
        "nobody else holds the pixels, so a consumer may write them"
    );

    let image = Arc::new(Image {
        pixels: vec![0.5; 12],
        dims: [3, 4],
    });
    let tensor = image.to_dlpack()?;
    let shared = facts!(tensor.view(), f32);
    numbers(
        "\nThe same, shared: we keep reading it",
        &shared,
        image.pixels.as_ptr().addr(),
    );
    assert_eq!(shared.address, image.pixels.as_ptr().addr());
    assert!(shared.read_only, "two owners, so nobody writes");
    assert_eq!(Arc::strong_count(&image), 2);
    drop(tensor);
    assert_eq!(
        Arc::strong_count(&image),
        1,
        "the deleter gave its share back"
    );
    println!("  owners   2 while the tensor lived, 1 now");
    Ok(())
}
