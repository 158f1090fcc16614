//! Parts of an annotation, lists of fixed length, views of elements: cases that planted bugs showed to be untested.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]

mod made;

use dlpack_core::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use dlpack_core::array::{View, ViewMut};
use dlpack_core::binding::{keep_by_allocation, share_allocation};
use dlpack_core::element::Plain;
use dlpack_core::import::FromList;
use dlpack_core::{
    DLPack, DataType, Error, FromDLPack, Loan, LoanMut, Managed, Parts, SharedBuffer,
};
use made::{BOOL, Foreign, U8};

/// DTY-02: all bytes of an array of `bool` are checked, also those of its last element.
#[test]
fn the_last_byte_of_a_list_of_bools_is_checked() {
    for wrong in 0..6 {
        let mut bytes = vec![1_u8; 6];
        bytes[wrong] = 7;
        let tensor = bytes.into_dlpack().unwrap();
        let tensor = tensor.cast(DataType::BOOL, &[3, 2]).unwrap();
        let mut view = ViewMut::<[bool; 2], [i64; 1]>::new(tensor).unwrap();
        let error = Some(Error::NotBool { found: 7 });
        assert_eq!(view.as_slice().err(), error, "byte {wrong}");
        #[cfg(feature = "ndarray")]
        {
            assert_eq!(view.as_ndarray().err(), error, "byte {wrong}");
            assert_eq!(view.as_ndarray_mut().err(), error, "byte {wrong}");
        }
        #[cfg(feature = "nalgebra")]
        {
            assert_eq!(view.as_vector().err(), error, "byte {wrong}");
            assert_eq!(view.as_vector_mut().err(), error, "byte {wrong}");
        }
        assert_eq!(view.as_mut_slice().err(), error, "byte {wrong}");
    }
}

/// LAY-05: a tensor without items has no address, but elements without bytes can be any number.
#[test]
fn elements_without_bytes_are_lent_without_an_address() {
    fn assert_lent<T: Plain + core::fmt::Debug + PartialEq + 'static>(tensor: Managed) {
        assert!(tensor.view().as_ptr().is_null());
        let view = View::<T, [i64; 1]>::new(tensor).unwrap();
        assert_eq!(view.as_slice().unwrap().len(), 6);
        #[cfg(feature = "ndarray")]
        assert_eq!(view.as_ndarray().unwrap().iter().count(), 6);
        #[cfg(feature = "nalgebra")]
        assert_eq!(view.as_vector().unwrap().iter().count(), 6);
    }
    let (numbers, bools) = (Vec::<u32>::new(), Vec::<bool>::new());
    assert_lent::<[u32; 0]>(numbers.into_dlpack().unwrap().reshape(&[6, 0]).unwrap());
    assert_lent::<[bool; 0]>(bools.into_dlpack().unwrap().reshape(&[6, 0]).unwrap());
}

/// The count of elements without bytes is checked, as no size in bytes limits it.
#[test]
fn too_many_elements_without_bytes_are_refused() {
    let tensor = Vec::<u32>::new().into_dlpack().unwrap();
    let tensor = tensor.reshape(&[20, usize::MAX / 20, 0]).unwrap();
    let error = View::<[u32; 0], [i64; 2]>::new(tensor).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

/// A tensor that cannot be read leaves the vector that it would replace as it is, also if the vector has as many elements.
#[test]
fn a_vector_keeps_its_elements_if_their_replacement_fails() {
    let mut bytes = [1_u8, 7];
    let foreign = Foreign::new(bytes.as_mut_ptr(), BOOL, &[2]);
    // SAFETY: a valid tensor over `bytes`, which outlives it and is not written.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let mut kept = vec![false, true];
    let error = kept.replace_by(managed).unwrap_err();
    assert_eq!(error, Error::NotBool { found: 7 });
    assert_eq!(kept, [false, true]);
}

/// A matrix type of another crate steps by elements, not by the numbers in them.
#[cfg(feature = "ndarray")]
#[test]
fn elements_of_several_numbers_are_lent_to_ndarray() {
    let pairs: Vec<[[f32; 2]; 2]> = (0..3_u8).map(|at| [[f32::from(at); 2]; 2]).collect();
    let view = View::<[f32; 2], [i64; 2]>::new(pairs.into_dlpack().unwrap()).unwrap();
    let first = view.index(1, 0).unwrap();
    let array = first.as_ndarray().unwrap();
    let found: Vec<_> = array.iter().map(|element| element[0]).collect();
    assert_eq!(found, [0.0, 1.0, 2.0]);
}

/// The stride of an axis of one element is never applied, and need not be a multiple of the element.
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
#[test]
fn the_stride_of_a_single_element_is_not_checked() {
    let tensor = |rows: usize| {
        let numbers: Vec<f32> = (0..10_u8).take(5 * rows).map(f32::from).collect();
        let tensor = numbers.into_dlpack().unwrap().reshape(&[rows, 5]).unwrap();
        View::<[f32; 3], [i64; 1]>::new(tensor.slice(1, 0..3).unwrap()).unwrap()
    };
    let (single, apart) = (tensor(1), tensor(2));
    assert_eq!(single.as_slice().unwrap(), [[0.0, 1.0, 2.0]]);
    #[cfg(feature = "ndarray")]
    {
        assert_eq!(single.as_ndarray().unwrap()[0], [0.0, 1.0, 2.0]);
        assert_eq!(apart.as_ndarray().err(), apart.as_slice().err());
    }
    #[cfg(feature = "nalgebra")]
    {
        assert_eq!(single.as_vector().unwrap()[0], [0.0, 1.0, 2.0]);
        assert_eq!(apart.as_vector().err(), apart.as_slice().err());
    }
}

#[test]
fn a_list_of_fixed_length_takes_only_its_own() {
    fn assert_only<L: FromList + PartialEq + core::fmt::Debug>(list: &[i64], expected: &L) {
        let needed = list.len();
        for found in (0..needed + 3).filter(|&len| len != needed) {
            let error = L::from_list("shape", &vec![1; found]).unwrap_err();
            assert_eq!(error, Error::Rank { found, needed });
        }
        assert_eq!(&L::from_list("shape", list).unwrap(), expected);
    }
    assert_only(&[4, 5], &[4_u32, 5]);
    assert_only(&[4], &(4_u8,));
    assert_only(&[4, 5], &(4_i64, 5_u8));
    assert_only(&[4, 5, 6], &(4_u8, 5_u16, 6_usize));
}

#[test]
fn an_extent_that_does_not_fit_names_its_axis() {
    let error = |parts: Parts<'_>| parts.describe(Loan::from(&[0_u8; 4][..])).unwrap_err();
    let axis_of = |error| match error {
        Error::BadExtent { axis, found } => (axis, found),
        other => panic!("{other}"),
    };
    assert_eq!(axis_of(error(Parts::new().shape((1_u8, -1_i8)))), (1, -1));
    assert_eq!(axis_of(error(Parts::new().shape((-2_i8, 1_u8)))), (0, -2));
    let large = error(Parts::new().shape((1_u8, 1_u8, u128::MAX)));
    assert_eq!(axis_of(large), (2, i128::MAX));
}

#[test]
fn mapped_elements_are_counted() {
    let view = View::<i32, [i64; 1]>::new(vec![1, 2, 3].into_dlpack().unwrap()).unwrap();
    let mut mapped = view.iter().map(|element| element + 1);
    for left in (0..=3).rev() {
        assert_eq!(mapped.size_hint(), (left, Some(left)));
        mapped.next();
    }
}

#[test]
fn the_axis_after_the_last_does_not_exist() {
    let tensor = || [[0_u8; 3]; 2].into_dlpack().unwrap();
    let text = |error: Error| error.to_string();
    let missing = text(tensor().permute(&[0, 2]).unwrap_err());
    assert!(missing.contains("axis 2 does not exist"), "{missing}");
    let twice = text(tensor().permute(&[1, 1]).unwrap_err());
    assert!(twice.contains("axis 1 is listed twice"), "{twice}");
}

/// An allocation keeps only tensors that lie in it; any other keeps its own owner.
#[test]
fn a_tensor_elsewhere_is_not_kept_by_an_allocation() {
    let whole = SharedBuffer::<u8>::zeroed(8).unwrap();
    let whole = share_allocation(&whole.describe().unwrap()).unwrap();
    let mut elsewhere = [1_u8, 2, 3];
    for flags in [0, DLPACK_FLAG_BITMASK_READ_ONLY] {
        let foreign = Foreign {
            flags,
            ..Foreign::new(elsewhere.as_mut_ptr(), U8, &[3])
        };
        // SAFETY: a valid tensor over `elsewhere`, which outlives it.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let kept = keep_by_allocation(managed, &whole);
        assert_eq!(foreign.deleted.times(), 0);
        assert_eq!(kept.view().to_vec::<u8>().unwrap(), [1, 2, 3]);
        drop(kept);
        assert_eq!(foreign.deleted.times(), 1);
    }
}

/// Each part of an annotation leaves the others as they are.
#[test]
fn a_writable_tensor_keeps_its_shape() {
    let mut memory = [0_u8; 6];
    let parts = Parts::new().shape([2, 3]).writable();
    let described = parts.describe_mut(LoanMut::from(&mut memory[..])).unwrap();
    assert_eq!(described.shape(), [2, 3]);
}
