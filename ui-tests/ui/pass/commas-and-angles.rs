//! Expressions with commas, angle brackets and shifts end where rustc would end them.

use std::collections::HashMap;

use dlpack_core::{DLPack, Error};

trait Area<A, B> {
    fn area(&self) -> usize;
}

impl<A, B> Area<A, B> for usize {
    fn area(&self) -> usize {
        *self * (size_of::<A>() + size_of::<B>())
    }
}

#[derive(DLPack)]
#[dlpack(
    offset = <usize as Area<u8, u8>>::area(&self.first),
    shape = [
        if rows < cols { rows } else { cols },
        HashMap::<usize, usize>::from([(1, 2)])[&1],
        1 << 1,
        (|a: usize, b: usize| a - b)(4, 3),
    ],
    readonly
)]
struct Samples {
    #[dlpack(data)]
    values: Vec<f32>,
    first: usize,
    rows: usize,
    cols: usize,
}

fn main() -> Result<(), Error> {
    let samples = Samples {
        values: vec![0.0; 10],
        first: 1,
        rows: 2,
        cols: 3,
    };
    let described = samples.describe()?;
    assert_eq!(described.shape(), [2, 2, 2, 1]);
    assert_eq!(described.as_ptr(), samples.values[2..].as_ptr().cast());
    Ok(())
}
