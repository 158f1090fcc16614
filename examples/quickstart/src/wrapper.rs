//! A newtype over an annotated, const-generic tensor: it is what it wraps.

use dlpack_core::{DLPack, Element, Error};

use crate::show::{facts, numbers};

#[derive(DLPack)]
struct Tensor<T: Element, const N: usize> {
    #[dlpack(data)]
    items: Vec<T>,
    #[dlpack(shape)]
    shape: [u32; N],
}

#[derive(DLPack)]
struct Volume(Tensor<i16, 3>);

pub(crate) fn main() -> Result<(), Error> {
    let volume = Volume(Tensor {
        items: vec![0; 2 * 3 * 4],
        shape: [2, 3, 4],
    });
    let before = volume.0.items.as_ptr().addr();
    let tensor = volume.into_dlpack()?;
    let facts = facts!(tensor.view(), i16);
    numbers("A newtype over a tensor of three axes", &facts, before);
    assert_eq!(
        (&facts.shape[..], &facts.strides[..]),
        (&[2, 3, 4][..], &[12, 4, 1][..])
    );
    assert_eq!((facts.address, facts.dtype.as_str()), (before, "int16"));
    Ok(())
}
