//! Imports into structs with strides: the struct then describes the tensor that was imported, or the import is refused.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]

mod made;

use dlpack_core::{DLPack, Error, FromDLPack, Managed, SharedBuffer};
use made::{Foreign, I32};
use std::sync::Arc;

/// The numbers from 0 on, and a tensor over the first of them.
fn numbers(shape: &[i64]) -> (Vec<i32>, Foreign) {
    let mut memory: Vec<i32> = (0..64).collect();
    let foreign = Foreign::new(memory.as_mut_ptr().cast(), I32, shape);
    (memory, foreign)
}

/// Imports a valid tensor, whose memory outlives it.
fn import(foreign: &Foreign) -> Managed {
    // SAFETY: shape and strides are valid, and all callers keep the memory.
    unsafe { Managed::from_raw(foreign.versioned()) }.unwrap()
}

/// Imports the tensor twice, and compares what the struct exports with the elements in the order of their indices.
#[track_caller]
fn assert_exports_the_same<T: DLPack + FromDLPack + Sync + 'static>(foreign: &Foreign) -> Arc<T> {
    let imported = Arc::new(T::from_dlpack(import(foreign)).unwrap());
    let export = imported.clone().to_dlpack().unwrap();
    let expected = import(foreign);
    assert_eq!(export.view().shape(), expected.view().shape());
    assert_eq!(
        export.view().to_vec::<i32>().unwrap(),
        expected.view().to_vec::<i32>().unwrap()
    );
    imported
}

#[track_caller]
fn assert_not_contiguous<T: FromDLPack>(foreign: &Foreign) {
    let before = foreign.deleted.times();
    let error = T::from_dlpack(import(foreign)).err().expect("refused");
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
    assert_eq!(foreign.deleted.times() - before, 1);
}

#[derive(DLPack, FromDLPack)]
struct Copied {
    #[dlpack(data)]
    values: Vec<i32>,
    #[dlpack(shape)]
    dims: [usize; 2],
    #[dlpack(strides)]
    strides: [isize; 2],
}

/// A copy is contiguous, whatever strides the tensor had.
#[test]
fn a_copy_has_strides_of_its_own() {
    let (_memory, foreign) = numbers(&[2, 3]);
    for strides in [[3, 1], [1, 2], [20, 5], [0, 1]] {
        let copied = assert_exports_the_same::<Copied>(&foreign.clone().strides(&strides));
        assert_eq!((copied.dims, copied.strides), ([2, 3], [3, 1]));
        assert_eq!(copied.values.len(), 6);
    }
}

#[derive(DLPack, FromDLPack)]
struct CopiedSeries {
    #[dlpack(data)]
    values: Vec<i32>,
    #[dlpack(strides)]
    strides: [isize; 1],
}

/// Without a shape, the struct has as many elements as its memory: a copy of a tensor that repeats one has all of them.
#[test]
fn a_copy_repeats_elements() {
    let (_memory, foreign) = numbers(&[4]);
    let copied = assert_exports_the_same::<CopiedSeries>(&foreign.strides(&[0]));
    assert_eq!((copied.values.len(), copied.strides), (4, [1]));
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [height, width], strides = [pitch, _])]
struct Pitched {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    height: usize,
    width: usize,
    pitch: isize,
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [height, width], byte_strides = [pitch, _])]
struct PitchedInBytes {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    height: usize,
    width: usize,
    pitch: isize,
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [height, width], byte_strides = [pitch, _])]
struct PitchedPairs {
    #[dlpack(data)]
    values: SharedBuffer<[i32; 2]>,
    height: usize,
    width: usize,
    pitch: isize,
}

/// The stride of `_` is computed at an export, so only a tensor with that stride is adopted.
#[test]
fn a_stride_without_a_field_has_to_be_that_of_the_export() {
    let (memory, foreign) = numbers(&[2, 3]);
    for pitch in [3, 2, 0] {
        let foreign = foreign.clone().strides(&[pitch, 1]);
        let pitch = isize::try_from(pitch).unwrap();
        let adopted = assert_exports_the_same::<Pitched>(&foreign);
        assert_eq!(
            (adopted.height, adopted.width, adopted.pitch),
            (2, 3, pitch)
        );
        assert_eq!(adopted.values.as_ptr().cast_const(), memory.as_ptr());
        let adopted = assert_exports_the_same::<PitchedInBytes>(&foreign);
        assert_eq!(
            (adopted.height, adopted.width, adopted.pitch),
            (2, 3, 4 * pitch)
        );
        assert_eq!(adopted.values.as_ptr().cast_const(), memory.as_ptr());
    }
    let transposed = foreign.strides(&[1, 2]);
    assert_not_contiguous::<Pitched>(&transposed);
    assert_not_contiguous::<PitchedInBytes>(&transposed);
}

/// The same for elements of two items, whose strides count both.
#[test]
fn a_stride_without_a_field_counts_whole_elements() {
    let (memory, foreign) = numbers(&[2, 3, 2]);
    let adopted = assert_exports_the_same::<PitchedPairs>(&foreign.clone().strides(&[6, 2, 1]));
    assert_eq!((adopted.height, adopted.width, adopted.pitch), (2, 3, 24));
    assert_eq!(adopted.values.as_ptr().cast(), memory.as_ptr().cast_mut());
    assert_not_contiguous::<PitchedPairs>(&foreign.strides(&[2, 4, 1]));
}

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [height, width], strides = [width, _])]
struct WidthTwice {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    height: usize,
    width: usize,
}

/// A field that is a size and a stride has one value.
#[test]
fn a_stride_that_is_a_size_has_to_equal_it() {
    let (_memory, foreign) = numbers(&[2, 3]);
    let adopted = assert_exports_the_same::<WidthTwice>(&foreign);
    assert_eq!(
        (adopted.height, adopted.width, adopted.values.len()),
        (2, 3, 6)
    );
    assert_not_contiguous::<WidthTwice>(&foreign.clone().strides(&[2, 1]));
}

#[derive(DLPack, FromDLPack)]
struct Pairs {
    #[dlpack(data)]
    values: SharedBuffer<[i32; 2]>,
    #[dlpack(shape)]
    dims: [usize; 1],
    #[dlpack(strides)]
    strides: [isize; 1],
}

/// The stride of an axis of size 1 can be any number, also one of half an element.
#[test]
fn the_stride_of_one_element_is_not_read() {
    let (_memory, foreign) = numbers(&[1, 2]);
    let adopted = assert_exports_the_same::<Pairs>(&foreign.strides(&[3, 1]));
    assert_eq!(
        (adopted.dims, adopted.strides, adopted.values.len()),
        ([1], [1], 1)
    );
}

#[derive(DLPack, FromDLPack)]
struct Bytewise {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    #[dlpack(shape)]
    dims: Vec<i64>,
    #[dlpack(byte_strides)]
    strides: Vec<i64>,
}

/// A stride that no number of bytes represents is not used if the tensor is empty; the struct can be exported all the same.
#[test]
fn an_empty_tensor_has_strides_that_can_be_exported() {
    let (_memory, foreign) = numbers(&[0, i64::MAX / 2]);
    let empty = assert_exports_the_same::<Bytewise>(&foreign);
    assert_eq!((empty.dims[0], empty.values.len()), (0, 0));
    assert_eq!(empty.strides[0] % 4, 0, "{:?}", empty.strides);
}
