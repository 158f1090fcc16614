//! Parts of an annotation, lists of fixed length, views of elements: cases that planted bugs showed to be untested.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]

mod made;

use dlpack_core::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use dlpack_core::array::View;
use dlpack_core::binding::keep_by_root_of;
use dlpack_core::import::FromList;
use dlpack_core::{DLPack, Error, FromDLPack, Loan, LoanMut, Managed, Parts, SharedBuffer};
use made::{BOOL, Foreign, U8};

/// DTY-02: all bytes of an array of `bool` are checked, also those of its last element.
#[test]
fn the_last_byte_of_a_list_of_bools_is_checked() {
    for wrong in 0..6 {
        let mut bytes = [1_u8; 6];
        bytes[wrong] = 7;
        let foreign = Foreign::new(bytes.as_mut_ptr(), BOOL, &[3, 2]);
        // SAFETY: a valid tensor over `bytes`, which outlives it and is not written.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let view = View::<[bool; 2], [i64; 1]>::new(managed).unwrap();
        let found = view.as_slice().map(<[_]>::len);
        assert_eq!(found, Err(Error::NotBool { found: 7 }), "byte {wrong}");
    }
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
    let whole = whole.into_dlpack().unwrap();
    let mut elsewhere = [1_u8, 2, 3];
    for flags in [0, DLPACK_FLAG_BITMASK_READ_ONLY] {
        let foreign = Foreign {
            flags,
            ..Foreign::new(elsewhere.as_mut_ptr(), U8, &[3])
        };
        // SAFETY: a valid tensor over `elsewhere`, which outlives it.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let kept = keep_by_root_of(managed, &whole);
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
