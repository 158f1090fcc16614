//! An enum whose variants hold different types: the data type is chosen while the program runs.

use dlpack_core::{DLPack, Error};

use crate::show::{facts, numbers};

#[derive(DLPack)]
enum Audio {
    Float(Vec<f32>),
    Stereo(Vec<[i16; 2]>),
    #[dlpack(skip)]
    Silence,
}

pub(crate) fn main() -> Result<(), Error> {
    let samples = vec![0.0_f32; 4];
    let before = samples.as_ptr().addr();
    let tensor = Audio::Float(samples).into_dlpack()?;
    let float = facts!(tensor.view(), f32);
    numbers("An enum over data types: floats", &float, before);
    assert_eq!(
        (&float.shape[..], float.dtype.as_str()),
        (&[4][..], "float32")
    );

    let samples = vec![[0_i16, 1]; 4];
    let before = samples.as_ptr().addr();
    let tensor = Audio::Stereo(samples).into_dlpack()?;
    let stereo = facts!(tensor.view(), i16);
    numbers(
        "The same enum: pairs of integers, their length a second axis",
        &stereo,
        before,
    );
    assert_eq!(
        (&stereo.shape[..], stereo.dtype.as_str()),
        (&[4, 2][..], "int16")
    );

    let error = Audio::Silence.into_dlpack().unwrap_err();
    println!("The same enum, silent: {error}");
    Ok(())
}
