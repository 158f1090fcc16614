//! The way back: a struct filled from a tensor.

use dlpack_core::{DLPack, Error, FromDLPack};

#[derive(DLPack, FromDLPack)]
struct Samples {
    #[dlpack(data)]
    values: Vec<f64>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

pub(crate) fn main() -> Result<(), Error> {
    let tensor = Samples {
        values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        dims: [2, 3],
    }
    .into_dlpack()?;
    let back = Samples::from_dlpack(tensor)?;
    println!(
        "Read back into a struct: {:?} of shape {:?}",
        back.values, back.dims
    );
    assert_eq!((back.values.len(), back.dims), (6, [2, 3]));

    let flat = vec![1.0_f64; 6].into_dlpack()?;
    let error = Samples::from_dlpack(flat)
        .err()
        .expect("one axis is not two");
    println!("A tensor that does not fit is refused: {error}");
    Ok(())
}
