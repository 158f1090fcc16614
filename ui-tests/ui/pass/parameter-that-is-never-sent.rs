//! A type parameter is only a tag; `bound` takes the place of the bound that is added otherwise.

use std::marker::PhantomData;
use std::rc::Rc;

use dlpack_core::{DLPack, Error};

#[derive(DLPack)]
#[dlpack(bound = "")]
struct Tagged<T> {
    #[dlpack(data)]
    values: Vec<f32>,
    tag: PhantomData<fn() -> T>,
}

fn main() -> Result<(), Error> {
    let tagged = Tagged::<Rc<str>> {
        values: vec![0.0; 3],
        tag: PhantomData,
    };
    assert_eq!(tagged.into_dlpack()?.view().shape(), [3]);
    Ok(())
}
