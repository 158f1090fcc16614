//! A video frame whose rows are padded: the pitch is given in bytes, as decoders do.

use dlpack_core::{DLPack, Error};

use crate::show::{facts, numbers, picture};

#[derive(DLPack)]
#[dlpack(shape = [height, width, 3], byte_strides = [linesize, _, _])]
struct Frame {
    #[dlpack(data)]
    bytes: Vec<u8>,
    height: u32,
    width: u32,
    linesize: usize,
}

pub(crate) fn main() -> Result<(), Error> {
    let frame = Frame {
        bytes: vec![0; 8 * 3],
        height: 3,
        width: 2,
        linesize: 8,
    };
    let before = frame.bytes.as_ptr().addr();
    let tensor = frame.into_dlpack()?;
    let facts = facts!(tensor.view(), u8);
    numbers(
        "A frame of 3 by 2 pixels, its rows padded to 8 bytes",
        &facts,
        before,
    );
    picture(&facts, before, 24, 8);
    assert_eq!(
        (&facts.shape[..], &facts.strides[..]),
        (&[3, 2, 3][..], &[8, 3, 1][..])
    );

    let torn = Frame {
        bytes: vec![0; 20],
        height: 3,
        width: 2,
        linesize: 8,
    };
    let error = torn.into_dlpack().unwrap_err();
    println!("The same frame over 20 bytes: {error}");
    Ok(())
}
