//! Fields that are set to tensors, and values that are replaced by them: what they hold afterwards, and what is refused.
#![cfg(feature = "derive")]

use dlpack_core::{DLPack, DLPackTensors, Error, FromDLPack, Managed};

#[derive(DLPack)]
struct Settings {
    #[dlpack(tensor(set, shape = [2, _]))]
    mask: Vec<bool>,
    #[dlpack(tensor(set))]
    weights: Vec<[f32; 2]>,
    #[dlpack(tensor(set, shape = [2, _], order = "F"))]
    matrix: Vec<i32>,
    #[dlpack(tensor)]
    fixed: Vec<u8>,
}

fn settings() -> Settings {
    Settings {
        mask: vec![false; 4],
        weights: vec![[0.5; 2]; 3],
        matrix: vec![0; 4],
        fixed: vec![7],
    }
}

fn tensor<T: DLPack + Send + 'static>(value: T) -> Managed {
    value.into_dlpack().unwrap()
}

#[test]
fn a_field_takes_the_elements_of_a_tensor_in_its_own_order() {
    let mut settings = settings();
    settings
        .set_tensor("mask", Some(tensor([[true, false, true]; 2])))
        .unwrap();
    assert_eq!(settings.mask, [true, false, true, true, false, true]);
    settings
        .set_tensor("weights", Some(tensor([[1.0_f32, 2.0]])))
        .unwrap();
    assert_eq!(settings.weights, [[1.0, 2.0]]);
    settings
        .set_tensor("matrix", Some(tensor([[1, 2, 3], [4, 5, 6]])))
        .unwrap();
    assert_eq!(settings.matrix, [1, 4, 2, 5, 3, 6]);
}

#[test]
fn a_tensor_that_does_not_fit_leaves_the_field_as_it_was() {
    let mut settings = settings();
    let dtype = settings.set_tensor("mask", Some(tensor([[1_u8, 0]; 2])));
    assert!(
        matches!(dtype, Err(Error::WrongDataType { .. })),
        "{dtype:?}"
    );
    let rank = settings.set_tensor("mask", Some(tensor([true, false])));
    assert!(
        matches!(
            rank,
            Err(Error::Rank {
                found: 1,
                needed: 2
            })
        ),
        "{rank:?}"
    );
    let size = settings.set_tensor("mask", Some(tensor([[true]; 3])));
    assert!(
        matches!(
            size,
            Err(Error::Extent {
                axis: 0,
                found: 3,
                ..
            })
        ),
        "{size:?}"
    );
    let element = settings.set_tensor("weights", Some(tensor([[1.0_f32; 3]])));
    assert!(element.is_err());
    let absent = settings.set_tensor("mask", None);
    assert!(
        matches!(absent, Err(Error::Absent { name: "mask" })),
        "{absent:?}"
    );
    for name in ["fixed", "masks"] {
        let unknown = settings.set_tensor(name, Some(tensor([1_u8])));
        assert!(
            matches!(unknown, Err(Error::NoSuchTensor { .. })),
            "{unknown:?}"
        );
    }
    assert_eq!(
        (settings.mask, settings.weights),
        (vec![false; 4], vec![[0.5; 2]; 3])
    );
    assert_eq!((settings.matrix, settings.fixed), (vec![0; 4], vec![7]));
}

/// Without a tensor of its own: only if the elements fit as they are.
#[test]
fn elements_are_copied_to_a_field_that_takes_them() {
    let mut settings = settings();
    let mut copy = |name: &str, tensor: Managed| settings.copy_to_tensor(name, &tensor.view());
    assert!(copy("mask", tensor([[true], [false]])));
    assert!(copy("weights", tensor([[1.0_f32, 2.0], [3.0, 4.0]])));
    assert!(!copy("mask", tensor([[1_u8], [0]])));
    assert!(!copy("mask", tensor([true, false])));
    assert!(!copy("mask", tensor([[true]; 3])));
    assert!(!copy("fixed", tensor([1_u8])));
    assert_eq!(settings.mask, [true, false]);
    assert_eq!(settings.weights, [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(settings.fixed, [7]);
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [columns()?, _])]
struct Rows {
    #[dlpack(data)]
    values: Vec<u8>,
}

fn columns() -> Result<usize, Error> {
    Ok(2)
}

#[derive(DLPack)]
struct Fallible {
    #[dlpack(tensor(set, shape = [self.rows()?, _]))]
    values: Vec<u8>,
    rows: Option<usize>,
}

impl Fallible {
    fn rows(&self) -> Result<usize, Error> {
        self.rows.ok_or(Error::Absent { name: "rows" })
    }
}

#[test]
fn a_shape_may_fail() {
    let mut value = Fallible {
        values: vec![7],
        rows: None,
    };
    let failed = value.set_tensor("values", Some(tensor([[1_u8], [2]])));
    assert!(
        matches!(failed, Err(Error::Absent { name: "rows" })),
        "{failed:?}"
    );
    assert_eq!(value.values, [7]);
    value.rows = Some(2);
    // Only `set_tensor` can return the error of the shape.
    assert!(!value.copy_to_tensor("values", &tensor([[1_u8], [2]]).view()));
    value
        .set_tensor("values", Some(tensor([[1_u8], [2]])))
        .unwrap();
    assert_eq!(value.values, [1, 2]);
    let rows = Rows::from_dlpack(tensor([[1_u8], [2]])).unwrap();
    assert_eq!(rows.values, [1, 2]);
    assert!(Rows::from_dlpack(tensor([[1_u8]; 3])).is_err());
}

#[derive(DLPack)]
struct Unsettable {
    #[dlpack(tensor)]
    bytes: Vec<u8>,
}

#[test]
fn a_struct_without_the_key_set_takes_no_tensor() {
    let mut value = Unsettable { bytes: vec![7] };
    assert!(matches!(
        value.set_tensor("bytes", Some(tensor([1_u8]))),
        Err(Error::NoSuchTensor { known: [], .. })
    ));
    assert!(!value.copy_to_tensor("bytes", &tensor([1_u8]).view()));
    assert_eq!(value.bytes, [7]);
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Image {
    #[dlpack(data)]
    pixels: Vec<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

/// By one call for the whole value, or by a copy of the elements if the type is a list of them.
#[test]
fn a_value_is_replaced_by_a_tensor() {
    let mut list = vec![1_u8];
    list.replace_by(tensor([2_u8, 3])).unwrap();
    assert_eq!(list, [2, 3]);
    assert!(list.replace_by_view(&tensor([4_u8]).view()));
    assert_eq!(list, [4]);
    assert!(list.replace_by(tensor([1.0_f32])).is_err());
    assert!(!list.replace_by_view(&tensor([1.0_f32]).view()));
    assert_eq!(list, [4]);

    let mut array = [1_u8, 2];
    array.replace_by(tensor([3_u8, 4])).unwrap();
    assert_eq!(array, [3, 4]);
    assert!(
        !array.replace_by_view(&tensor([5_u8, 6]).view()),
        "it needs a tensor"
    );
    assert_eq!(array, [3, 4]);

    let mut image = Image {
        pixels: vec![1],
        dims: [1, 1],
    };
    image.replace_by(tensor([[2_u8, 3]])).unwrap();
    assert_eq!(
        image,
        Image {
            pixels: vec![2, 3],
            dims: [1, 2]
        }
    );
    assert!(
        !image.replace_by_view(&tensor([[5_u8]]).view()),
        "it needs a tensor"
    );
    assert_eq!(image.dims, [1, 2]);
}

#[test]
fn a_type_fits_the_tensors_that_it_is_made_of() {
    assert!(Vec::<u8>::fits(&tensor([1_u8]).view()));
    assert!(!Vec::<u8>::fits(&tensor([1_i8]).view()));
    assert!(!Vec::<[u8; 2]>::fits(&tensor([1_u8, 2]).view()));
    assert!(Image::fits(&tensor([[1_u8]]).view()));
    assert!(!Image::fits(&tensor([1_u8]).view()));
}
