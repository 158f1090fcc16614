//! `#[dlpack(crate = renamed)]`: no path of any expansion says `dlpack_core`, which does not exist here.
#![forbid(unsafe_code)]

use std::sync::Arc;

use renamed::{DLPack, DLPackTensors, Element, Error, FromDLPack, Record, assert_exports};

#[derive(DLPack, FromDLPack)]
#[dlpack(crate = renamed, shape = [rows, _], order = "F")]
struct Matrix {
    #[dlpack(data, writable)]
    values: Vec<f32>,
    rows: usize,
}
assert_exports!(Matrix: f32, rank 2, writable);

#[derive(Element)]
#[dlpack(crate = ::renamed)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(DLPack)]
#[dlpack(crate = renamed)]
struct Path {
    #[dlpack(data, owner)]
    points: Arc<[Point]>,
}

#[derive(Record)]
#[dlpack(crate = renamed)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u64,
}

#[derive(DLPack)]
#[dlpack(crate = renamed, tensor(name = "raw", data = &self.weights[..]))]
struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
    #[dlpack(tensor)]
    weights: Vec<f32>,
}

#[derive(DLPack, FromDLPack)]
#[dlpack(crate = renamed)]
struct Newtype(Matrix);

#[derive(DLPack, FromDLPack)]
#[dlpack(crate = renamed)]
enum Samples {
    Float(Vec<f32>),
    Int(Vec<i16>),
}

#[derive(DLPack)]
#[dlpack(crate = renamed, via = self.0.clone())]
struct Computed(Vec<f32>);

#[test]
fn every_derive_takes_the_other_name() -> Result<(), Error> {
    let matrix = || Matrix {
        values: vec![0.0; 6],
        rows: 2,
    };
    let tensor = Newtype(matrix()).into_dlpack()?;
    assert_eq!(tensor.view().strides(), [1, 2]);
    assert_eq!(Newtype::from_dlpack(tensor)?.0.rows, 2);

    let points = Arc::from(vec![Point { x: 1.0, y: 2.0 }]);
    let path = Arc::new(Path { points });
    assert_eq!(path.to_dlpack()?.view().to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!((path.points[0].x, path.points[0].y), (1.0, 2.0));

    let tape = Tape {
        trades: vec![Trade {
            price: 1.5,
            size: 7,
        }],
        weights: vec![0.5],
    };
    assert_eq!(Tape::NAMES, ["raw", "weights", "price", "size"]);
    assert_eq!(tape.describe_tensor("size")?.shape(), [1]);
    assert_eq!(tape.describe_raw()?.as_ptr(), tape.weights.as_ptr().cast());
    assert_eq!((tape.trades[0].price, tape.trades[0].size), (1.5, 7));

    let tensor = Samples::Int(vec![1, 2]).into_dlpack()?;
    let Samples::Int(back) = Samples::from_dlpack(tensor)? else {
        panic!("the data type picks the variant");
    };
    assert_eq!(back, [1, 2]);
    assert_eq!(Samples::Float(vec![]).describe()?.shape(), [0]);

    assert_eq!(Computed(vec![1.0]).describe()?.shape(), [1]);
    Ok(())
}
