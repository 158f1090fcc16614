//! A part of a field is borrowed by whatever expression borrows it.

use dlpack_core::{DLPack, Error, assert_exports};

#[derive(DLPack)]
#[dlpack(data = self.frames[*current].as_slice())]
struct ByMethod {
    frames: Vec<Vec<f32>>,
    current: Box<usize>,
}

#[derive(DLPack)]
#[dlpack(data = &frames[0][1..])]
struct ByIndex {
    frames: Vec<Vec<f32>>,
}

#[derive(DLPack)]
#[dlpack(data = &self.0[1])]
struct ByTuple(Vec<Vec<f32>>);

#[derive(DLPack)]
#[dlpack(data = if *second { &self.right } else { &self.left })]
struct ByChoice {
    left: Vec<f32>,
    right: Vec<f32>,
    second: Box<bool>,
}

// What they give is known without a value.
assert_exports!(ByMethod: f32, rank 1, readonly);
assert_exports!(ByChoice: f32, rank 1, readonly);

fn main() -> Result<(), Error> {
    let frames = || vec![vec![0.0; 2], vec![0.0; 3]];
    let method = ByMethod {
        frames: frames(),
        current: Box::new(1),
    };
    assert_eq!(method.describe()?.shape(), [3]);
    assert_eq!(ByIndex { frames: frames() }.describe()?.shape(), [1]);
    assert_eq!(ByTuple(frames()).describe()?.shape(), [3]);
    let choice = ByChoice {
        left: vec![],
        right: vec![1.0],
        second: Box::new(true),
    };
    assert_eq!(choice.describe()?.shape(), [1]);
    Ok(())
}
