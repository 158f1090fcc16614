//! From an imported tensor to the structs, and out again.

use std::sync::Arc;

use dlpack_core::{
    DLPack, DataType, Device, Element, Error, FromDLPack, Managed, SharedBuffer, assert_exports,
};

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
    label: Option<String>,
}

#[test]
fn a_copy_in_fields() -> Result<(), Error> {
    let image = || Image {
        pixels: (0_u8..12).map(f32::from).collect(),
        dims: [2, 3, 2],
        label: None,
    };
    let back = Image::from_dlpack(image().into_dlpack()?)?;
    assert_eq!(back, image());

    let flat = vec![1.0_f32; 4].into_dlpack()?;
    let rank = Error::Rank {
        found: 1,
        needed: 3,
    };
    assert_eq!(Image::from_dlpack(flat).unwrap_err(), rank);
    let bytes = [[[0_u8; 2]; 3]; 2].into_dlpack()?;
    let dtype = Error::WrongDataType {
        found: DataType::U8,
        needed: DataType::F32,
    };
    assert_eq!(Image::from_dlpack(bytes).unwrap_err(), dtype);
    Ok(())
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
#[dlpack(shape = [rows, cols, 2], order = "F")]
struct Complexes {
    #[dlpack(data)]
    values: Box<[f64]>,
    rows: u16,
    cols: i32,
}

#[test]
fn a_list_is_solved_for_its_fields() -> Result<(), Error> {
    let values = Complexes {
        values: (0_u8..12).map(f64::from).collect(),
        rows: 2,
        cols: 3,
    };
    let tensor = values.into_dlpack()?;
    assert_eq!(tensor.view().strides(), [1, 2, 6]);
    let back = Complexes::from_dlpack(tensor)?;
    assert_eq!((back.rows, back.cols), (2, 3));
    assert_eq!(back.values[1], 1.0);

    let three = Complexes::from_dlpack([[[0.0_f64; 3]; 1]; 1].into_dlpack()?).unwrap_err();
    assert!(matches!(
        three,
        Error::Extent {
            axis: 2,
            found: 3,
            ..
        }
    ));
    Ok(())
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [n, n])]
struct Square {
    #[dlpack(data)]
    values: Vec<i32>,
    n: usize,
}

#[test]
fn a_repeated_extent_has_to_agree() -> Result<(), Error> {
    assert_eq!(Square::from_dlpack([[1, 2], [3, 4]].into_dlpack()?)?.n, 2);
    assert!(Square::from_dlpack([[1, 2, 3], [3, 4, 5]].into_dlpack()?).is_err());
    let square = Square {
        values: vec![1; 4],
        n: 2,
    };
    assert_eq!(square.describe()?.shape(), [2, 2]);
    assert_eq!(square.values.len(), 4);
    Ok(())
}

#[derive(DLPack, FromDLPack)]
struct Adopted {
    #[dlpack(data)]
    values: SharedBuffer<f32>,
    #[dlpack(shape)]
    shape: Vec<i64>,
    #[dlpack(strides)]
    strides: Vec<i64>,
    #[dlpack(offset)]
    first: usize,
    #[dlpack(device)]
    device: Device,
}
assert_exports!(Adopted: f32, writable);

#[test]
fn memory_is_adopted_strides_and_all() -> Result<(), Error> {
    #[derive(DLPack)]
    #[dlpack(shape = [2, 3], strides = [1, 2])]
    struct Columns(Vec<f32>);

    let columns = Columns(vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let data = columns.0.as_ptr();
    let adopted = Adopted::from_dlpack(columns.into_dlpack()?)?;
    assert_eq!(adopted.values.as_ptr().cast_const(), data);
    assert_eq!(
        (&adopted.shape[..], &adopted.strides[..]),
        (&[2, 3][..], &[1, 2][..])
    );
    assert_eq!((adopted.first, adopted.device), (0, Device::CPU));
    let again = Arc::new(adopted).to_dlpack()?;
    assert_eq!(again.view().as_ptr(), data.cast());
    assert_eq!(
        again.view().to_vec::<f32>()?,
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    Ok(())
}

/// The export computes the strides of `_`, so only a tensor with these strides can be adopted.
#[test]
fn strides_that_are_left_out_are_those_of_the_export() -> Result<(), Error> {
    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [rows, columns], strides = [pitch, _])]
    struct Rows {
        #[dlpack(data)]
        values: SharedBuffer<f32>,
        rows: usize,
        columns: usize,
        pitch: usize,
    }

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [height, width, 2], byte_strides = [line, _, _])]
    struct Lines {
        #[dlpack(data)]
        values: SharedBuffer<f32>,
        height: usize,
        width: usize,
        line: usize,
    }

    #[derive(DLPack)]
    struct Strided {
        #[dlpack(data)]
        values: Vec<f32>,
        #[dlpack(shape)]
        shape: Vec<usize>,
        #[dlpack(strides)]
        strides: Vec<usize>,
    }

    let strided = |shape: &[usize], strides: &[usize]| {
        let values = (0..shape.iter().product::<usize>()).map(|value| value as f32);
        Strided {
            values: values.collect(),
            shape: shape.into(),
            strides: strides.into(),
        }
    };
    let refused = |error: &Error| matches!(error, Error::NotContiguous { .. });
    for (shape, strides, fits) in [
        ([2, 3], [3, 1], true),
        ([2, 3], [1, 2], false),
        ([1, 3], [1, 1], true),
        ([3, 1], [1, 7], true),
        ([0, 3], [5, 2], true),
    ] {
        let tensor = strided(&shape, &strides).into_dlpack()?;
        let numbers = tensor.view().to_vec::<f32>()?;
        match Rows::from_dlpack(tensor) {
            Ok(rows) => {
                assert!(fits, "{shape:?} {strides:?}");
                assert_eq!((rows.rows, rows.columns), (shape[0], shape[1]));
                assert_eq!(rows.into_dlpack()?.view().to_vec::<f32>()?, numbers);
            }
            Err(error) => assert!(!fits && refused(&error), "{shape:?} {strides:?} {error}"),
        }
    }
    for (strides, fits) in [([6, 2, 1], true), ([3, 1, 6], false), ([2, 4, 1], false)] {
        let tensor = strided(&[2, 3, 2], &strides).into_dlpack()?;
        let numbers = tensor.view().to_vec::<f32>()?;
        match Lines::from_dlpack(tensor) {
            Ok(lines) => {
                assert!(fits, "{strides:?}");
                assert_eq!((lines.height, lines.width, lines.line), (2, 3, 24));
                assert_eq!(lines.into_dlpack()?.view().to_vec::<f32>()?, numbers);
            }
            Err(error) => assert!(!fits && refused(&error), "{strides:?} {error}"),
        }
    }
    Ok(())
}

/// A list of strides says how many axes there are, also without a list of sizes.
#[test]
fn a_list_of_strides_needs_as_many_axes() -> Result<(), Error> {
    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(strides = [row, column])]
    struct Matrix {
        row: usize,
        column: usize,
        #[dlpack(shape)]
        shape: Vec<usize>,
        #[dlpack(data)]
        values: SharedBuffer<f32>,
    }

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(byte_strides = [_, step])]
    struct Steps {
        #[dlpack(shape)]
        shape: [usize; 2],
        step: usize,
        #[dlpack(data)]
        values: Vec<f32>,
    }

    #[derive(DLPack, FromDLPack, Debug)]
    enum Any {
        Matrix(Matrix),
    }

    let refused = |found| Error::Rank { found, needed: 2 };
    for shape in [&[][..], &[6], &[1, 2, 3]] {
        let tensor = || {
            let len = shape.iter().product();
            vec![1.0_f32; len].into_dlpack()?.reshape(shape)
        };
        let expected = refused(shape.len());
        assert_eq!(Matrix::from_dlpack(tensor()?).unwrap_err(), expected);
        assert_eq!(Steps::from_dlpack(tensor()?).unwrap_err(), expected);
        assert_eq!(Any::from_dlpack(tensor()?).unwrap_err(), expected);
    }
    let matrix = Matrix::from_dlpack([[1.0_f32, 2.0]].into_dlpack()?)?;
    assert_eq!(
        (matrix.row, matrix.column, &matrix.shape[..]),
        (2, 1, &[1, 2][..])
    );
    assert_eq!(Steps::from_dlpack([[1.0_f32, 2.0]].into_dlpack()?)?.step, 4);
    Ok(())
}

/// A stride can be a field that is also a size or another stride; the tensor must then have the same value for both.
#[test]
fn a_stride_that_equals_another_field_has_to_agree() -> Result<(), Error> {
    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [rows, columns], strides = [columns, step])]
    struct Sized {
        #[dlpack(data)]
        values: SharedBuffer<f32>,
        rows: usize,
        columns: usize,
        step: usize,
    }

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [rows, columns], strides = [step, step])]
    struct Equal {
        #[dlpack(data)]
        values: SharedBuffer<f32>,
        rows: usize,
        columns: usize,
        step: usize,
    }

    let values = || SharedBuffer::from(vec![0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let columns = |rows, columns, step| Sized {
        values: values(),
        rows,
        columns,
        step,
    };
    assert_eq!(Sized::from_dlpack(columns(2, 3, 1).into_dlpack()?)?.step, 1);

    #[derive(DLPack)]
    #[dlpack(shape = [2, 3], strides = [1, 2])]
    struct ColumnMajor(Vec<f32>);
    let column_major = || ColumnMajor(vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]).into_dlpack();
    let error = Sized::from_dlpack(column_major()?).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
    let error = Equal::from_dlpack(column_major()?).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
    let one = Equal::from_dlpack([[1.0_f32], [2.0]].into_dlpack()?)?;
    assert_eq!(one.into_dlpack()?.view().to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

/// NumPy gives an axis of size 1 any stride, such as `zeros((1, 3))[::-1]`, and so may the axes of an empty array.
#[test]
fn the_stride_of_a_single_item_is_ignored() -> Result<(), Error> {
    #[derive(DLPack)]
    #[dlpack(shape = self.1, strides = self.2)]
    struct Strided(#[dlpack(data)] Vec<i32>, [i64; 2], [i64; 2]);

    #[derive(DLPack, FromDLPack)]
    #[dlpack(shape = [rows, columns], strides = [_, step])]
    struct InColumns {
        #[dlpack(data)]
        values: SharedBuffer<i32>,
        rows: usize,
        columns: usize,
        step: u8,
    }

    #[derive(DLPack, FromDLPack)]
    #[dlpack(shape = [rows, columns], strides = [step, _])]
    struct InRows {
        #[dlpack(data)]
        values: SharedBuffer<i32>,
        rows: usize,
        columns: usize,
        step: u8,
    }

    #[derive(DLPack, FromDLPack)]
    #[dlpack(strides = [step])]
    struct Pairs {
        #[dlpack(data)]
        values: SharedBuffer<[i32; 2]>,
        step: u8,
    }

    let export = |shape: [i64; 2], strides| {
        let count = usize::try_from(shape[0] * shape[1]).unwrap();
        let values = (0..i32::try_from(count).unwrap()).collect();
        Strided(values, shape, strides).into_dlpack()
    };
    let cases = [
        ([3, 1], [1, 3]),
        ([3, 1], [1, 1]),
        ([1, 3], [-2, 1]),
        ([1, 3], [i64::MAX, 1]),
        ([1, 1], [7, -7]),
        ([0, 3], [-2, -1]),
        ([3, 0], [i64::MAX, 5]),
    ];
    for (shape, strides) in cases {
        let columns = InColumns::from_dlpack(export(shape, strides)?)?.into_dlpack()?;
        let rows = InRows::from_dlpack(export(shape, strides)?)?.into_dlpack()?;
        for back in [columns, rows] {
            assert_eq!(back.view().shape(), shape);
            let values = export(shape, strides)?.view().to_vec::<i32>()?;
            assert_eq!(back.view().to_vec::<i32>()?, values);
        }
    }
    let pairs = Pairs::from_dlpack(export([1, 2], [7, 1])?)?;
    assert_eq!(pairs.into_dlpack()?.view().shape(), [1, 2]);
    // With more items the strides count.
    let error = Pairs::from_dlpack(export([2, 2], [1, 2])?)
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::PartialStride { .. }), "{error:?}");
    let error = InColumns::from_dlpack(export([3, 2], [1, 3])?)
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
    Ok(())
}

/// The number of elements is a part of the type of an array.
#[test]
fn an_array_of_another_length_leaves_the_tensor_to_the_next_variant() -> Result<(), Error> {
    #[derive(FromDLPack, Debug, PartialEq)]
    enum Sizes {
        Two([i32; 2]),
        Pairs([[i32; 2]; 2]),
        Rest(Vec<i32>),
    }

    let import = |values: Vec<i32>| Sizes::from_dlpack(values.into_dlpack()?);
    assert_eq!(import(vec![1, 2])?, Sizes::Two([1, 2]));
    assert_eq!(import(vec![1])?, Sizes::Rest(vec![1]));
    assert_eq!(import(vec![])?, Sizes::Rest(vec![]));
    assert_eq!(import(vec![1, 2, 3])?, Sizes::Rest(vec![1, 2, 3]));
    let square = Sizes::from_dlpack([[1, 2], [3, 4]].into_dlpack()?)?;
    assert_eq!(square, Sizes::Pairs([[1, 2], [3, 4]]));
    let rows = Sizes::from_dlpack([[1, 2], [3, 4], [5, 6]].into_dlpack()?)?;
    assert_eq!(rows, Sizes::Rest(vec![1, 2, 3, 4, 5, 6]));
    Ok(())
}

/// The bytes between the items may belong to another owner.
#[test]
fn gaps_are_not_adopted() -> Result<(), Error> {
    #[derive(DLPack)]
    #[dlpack(shape = [2, 2], strides = [3, 1])]
    struct Padded(Vec<f32>);

    let padded = Padded(vec![0.0, 1.0, 2.0, 3.0, 4.0]).into_dlpack()?;
    let error = Adopted::from_dlpack(padded).map(drop).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
    Ok(())
}

#[derive(DLPack, FromDLPack)]
struct Newtype(Image);

#[derive(Element, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(DLPack, FromDLPack)]
enum Samples {
    Float(Vec<f32>),
    Points(Vec<[i16; 2]>),
    #[dlpack(skip)]
    Nothing,
}

#[test]
fn types_are_read_back() -> Result<(), Error> {
    let image = Image {
        pixels: vec![0.0; 2],
        dims: [1, 1, 2],
        label: None,
    };
    let back = Newtype::from_dlpack(Newtype(image).into_dlpack()?)?;
    assert_eq!(back.0.dims, [1, 1, 2]);

    let points = vec![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }];
    let tensor = points.into_dlpack()?;
    assert_eq!(tensor.view().shape(), [2, 2]);
    let back = Vec::<Point>::from_dlpack(tensor)?;
    assert_eq!(back[1], Point { x: 3.0, y: 4.0 });

    for samples in [Samples::Float(vec![1.0]), Samples::Points(vec![[1, 2]])] {
        let found = Samples::from_dlpack(samples.into_dlpack()?)?;
        match found {
            Samples::Float(values) => assert_eq!(values, [1.0]),
            Samples::Points(values) => assert_eq!(values, [[1, 2]]),
            Samples::Nothing => panic!("a skipped variant takes no tensor"),
        }
    }
    assert!(Samples::Nothing.describe().is_err());
    let refused = Samples::from_dlpack(vec![1_u64].into_dlpack()?).err();
    assert!(matches!(
        refused,
        Some(Error::NoVariant {
            name: "Samples",
            ..
        })
    ));
    Ok(())
}

/// An array without axes is a number, and fits what imports it: a list, and a struct with any number of axes.
#[test]
fn a_variant_accepts_an_array_without_axes() -> Result<(), Error> {
    #[derive(DLPack, FromDLPack, Debug)]
    struct Pixels<T: Element> {
        #[dlpack(data)]
        values: Vec<T>,
        #[dlpack(shape)]
        shape: Vec<usize>,
    }

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [])]
    struct Number {
        #[dlpack(data)]
        value: [i32; 1],
    }

    #[derive(DLPack, FromDLPack, Debug)]
    enum Any {
        Float(Pixels<f32>),
        Number(Number),
        Bytes(Vec<u8>),
    }

    let numbers = |value: u8| -> Result<[Managed; 3], Error> {
        Ok([
            [f32::from(value)].into_dlpack()?.reshape(&[])?,
            [i32::from(value)].into_dlpack()?.reshape(&[])?,
            [value].into_dlpack()?.reshape(&[])?,
        ])
    };
    let [float, number, byte] = numbers(7)?;
    assert!(
        matches!(Any::from_dlpack(float)?, Any::Float(it) if it.values == [7.0] && it.shape.is_empty())
    );
    assert!(matches!(Any::from_dlpack(number)?, Any::Number(it) if it.value == [7]));
    assert!(matches!(Any::from_dlpack(byte)?, Any::Bytes(it) if it == [7]));
    let list = Any::from_dlpack([1_i32, 2].into_dlpack()?).unwrap_err();
    assert!(matches!(list, Error::NoVariant { .. }), "{list:?}");
    Ok(())
}

const CHANNELS: u8 = 3;

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [_, CHANNELS, N, 1usize, 2 * N - 1])]
struct Constants<const N: usize> {
    #[dlpack(data)]
    values: Vec<f32>,
}

macro_rules! fixed {
    ($name:ident, $any:expr, $size:expr, $columns:ident, $also:expr) => {
        #[derive(DLPack, FromDLPack)]
        #[dlpack(shape = [$any, $size, $also])]
        struct $name {
            #[dlpack(data)]
            values: Vec<f32>,
            $columns: usize,
        }
    };
}
fixed!(Fixed, _, 3, columns, columns);

#[test]
fn constant_sizes_are_compared() -> Result<(), Error> {
    let values = vec![0.5; 18];
    let tensor = Constants::<2> { values }.into_dlpack()?;
    assert_eq!(tensor.view().shape(), [1, 3, 2, 1, 3]);
    let back = Constants::<2>::from_dlpack(tensor)?;
    assert_eq!(back.values.len(), 18);
    let other = Constants::<1>::from_dlpack(back.into_dlpack()?);
    assert!(matches!(
        other.err(),
        Some(Error::Extent {
            axis: 2,
            found: 2,
            ..
        })
    ));

    let fixed = Fixed {
        values: vec![0.5; 12],
        columns: 2,
    };
    let back = Fixed::from_dlpack(fixed.into_dlpack()?)?;
    assert_eq!((back.values.len(), back.columns), (12, 2));
    let other = Fixed::from_dlpack([[[0.5_f32; 2]; 4]; 1].into_dlpack()?);
    assert!(matches!(
        other.err(),
        Some(Error::Extent {
            axis: 1,
            found: 4,
            ..
        })
    ));
    Ok(())
}

/// A variant is chosen by the sizes that are constants.
#[derive(FromDLPack)]
enum Choice {
    Two(Constants<2>),
    One(Constants<1>),
}

#[test]
fn constant_sizes_select_a_variant() -> Result<(), Error> {
    let one = Choice::from_dlpack(
        Constants::<1> {
            values: vec![0.5; 3],
        }
        .into_dlpack()?,
    )?;
    assert!(matches!(one, Choice::One(Constants { values }) if values.len() == 3));
    let two = Choice::from_dlpack(
        Constants::<2> {
            values: vec![0.5; 18],
        }
        .into_dlpack()?,
    )?;
    assert!(matches!(two, Choice::Two(Constants { values }) if values.len() == 18));
    Ok(())
}
