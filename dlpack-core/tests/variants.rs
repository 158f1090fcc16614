//! Enums over structs and enums that derive `FromDLPack`: dtype, rank and constant sizes select the variant.

use dlpack_core::{DLPack, DataType, Element, Error, FromDLPack};

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Gray {
    #[dlpack(data)]
    pixels: Vec<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
#[dlpack(shape = [height, width, 3])]
struct Rgb {
    #[dlpack(data)]
    pixels: Vec<u8>,
    height: usize,
    width: usize,
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
#[dlpack(shape = [height, width, 4])]
struct Rgba {
    #[dlpack(data)]
    pixels: Vec<u8>,
    height: usize,
    width: usize,
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Matrix<T: Element> {
    #[dlpack(data)]
    values: Vec<T>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
enum Bytes {
    Gray(Gray),
    Rgb(Rgb),
    Rgba(Rgba),
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
enum Floats {
    Single(Matrix<f32>),
    Double(Matrix<f64>),
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
enum Pixels {
    Bytes(Bytes),
    Floats(Floats),
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
enum Anything {
    Pixels(Pixels),
    Labels(Vec<i64>),
}

fn import(tensor: impl DLPack + 'static) -> Result<Anything, Error> {
    Anything::from_dlpack(tensor.into_dlpack()?)
}

#[test]
fn the_variant_that_fits_is_selected_in_three_levels() {
    let gray = vec![[1_u8, 2, 3]; 2];
    let dims = [2, 3];
    let pixels = vec![1, 2, 3, 1, 2, 3];
    let bytes = |bytes| Ok(Anything::Pixels(Pixels::Bytes(bytes)));
    assert_eq!(import(gray), bytes(Bytes::Gray(Gray { pixels, dims })));
    let (height, width) = (1, 2);
    let pixels = vec![1, 2, 3, 4, 5, 6];
    assert_eq!(
        import(vec![[[1_u8, 2, 3], [4, 5, 6]]]),
        bytes(Bytes::Rgb(Rgb {
            pixels,
            height,
            width
        }))
    );
    let pixels = vec![7; 8];
    assert_eq!(
        import(vec![[[7_u8; 4]; 2]]),
        bytes(Bytes::Rgba(Rgba {
            pixels,
            height,
            width
        }))
    );
    let floats = |floats| Ok(Anything::Pixels(Pixels::Floats(floats)));
    let (values, dims) = (vec![0.5; 2], [1, 2]);
    assert_eq!(
        import(vec![[0.5_f32; 2]]),
        floats(Floats::Single(Matrix { values, dims }))
    );
    let values = vec![0.5; 2];
    assert_eq!(
        import(vec![[0.5_f64; 2]]),
        floats(Floats::Double(Matrix { values, dims }))
    );
    assert_eq!(import(vec![1_i64, 2]), Ok(Anything::Labels(vec![1, 2])));
}

#[test]
fn a_tensor_without_a_variant_is_refused_with_all_variants() {
    let refused = |dtype, rank| {
        Err(Error::NoVariant {
            name: "Anything",
            dtype,
            rank,
            variants: &["Pixels(Pixels)", "Labels(Vec<i64>)"],
        })
    };
    assert_eq!(import(vec![1_u8]), refused(DataType::U8, 1));
    assert_eq!(import(vec![[[1_u8; 5]; 2]]), refused(DataType::U8, 3));
    assert_eq!(import(vec![[[1.0_f32]]]), refused(DataType::F32, 3));
    assert_eq!(import(vec![1_i32]), refused(DataType::I32, 1));
    let text = import(vec![1_u8]).unwrap_err().to_string();
    assert_eq!(
        text,
        r#"no variant of `Anything` accepts uint8 of rank 1; expected one of ["Pixels(Pixels)", "Labels(Vec<i64>)"]"#
    );
}

#[derive(FromDLPack, PartialEq, Debug)]
enum Counted {
    Three([f32; 3]),
    Any(Vec<f32>),
    Pair([i64; 2]),
}

#[test]
fn an_array_takes_a_tensor_of_as_many_elements() {
    let tensor = |values: &[f32]| values.to_vec().into_dlpack().unwrap();
    assert_eq!(
        Counted::from_dlpack(tensor(&[1.0, 2.0, 3.0])),
        Ok(Counted::Three([1.0, 2.0, 3.0]))
    );
    assert_eq!(
        Counted::from_dlpack(tensor(&[1.0, 2.0])),
        Ok(Counted::Any(vec![1.0, 2.0]))
    );
    assert_eq!(
        Counted::from_dlpack(vec![1_i64, 2].into_dlpack().unwrap()),
        Ok(Counted::Pair([1, 2]))
    );
    let error = Counted::from_dlpack(vec![1_i64, 2, 3].into_dlpack().unwrap());
    assert!(matches!(error, Err(Error::NoVariant { .. })), "{error:?}");
}
