//! A type of the user's is called `Option`, and lends its elements.

use dlpack_core::{Buffer, DLPack, Error, Loan};

struct Option<T>(Vec<T>);

impl Buffer for Option<f32> {
    fn lend(&self) -> Loan<'_> {
        self.0.lend()
    }
}

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: Option<f32>,
    name: &'static str,
}

fn main() -> Result<(), Error> {
    let image = Image {
        pixels: Option(vec![0.0; 3]),
        name: "image",
    };
    assert_eq!((image.describe()?.shape(), image.name), (&[3][..], "image"));
    Ok(())
}
