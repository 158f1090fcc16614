//! Imports of tensors into Rust values: a tensor that fits is read in the order of its indices, any other is refused, and both
//! are released once.

#![expect(unsafe_code, reason = "makes foreign tensors by hand")]

mod made;

use dlpack_core::{DLPack, DataType, Device, Error, FromDLPack, Managed, SharedBuffer, Version};
use made::{BOOL, F32, Foreign, I32, U8};
use std::sync::Arc;

/// Imports a valid tensor, whose memory outlives it.
fn import(foreign: &Foreign) -> Managed {
    // SAFETY: shape and strides are valid, and all callers keep the memory.
    unsafe { Managed::from_raw(foreign.versioned()) }.unwrap()
}

/// Numbers from 0 on, and a tensor over the first of them.
fn numbers(shape: &[i64]) -> (Vec<i32>, Foreign) {
    let mut memory: Vec<i32> = (0..64).collect();
    let foreign = Foreign::new(memory.as_mut_ptr().cast(), I32, shape);
    (memory, foreign)
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Rows {
    #[dlpack(data)]
    values: Vec<i32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
#[dlpack(order = "F")]
struct Columns {
    #[dlpack(data)]
    values: Vec<i32>,
    #[dlpack(shape)]
    dims: [usize; 2],
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
struct Pixels {
    #[dlpack(data)]
    values: Vec<[i32; 3]>,
    #[dlpack(shape)]
    dims: (u16, u16),
}

#[derive(DLPack, FromDLPack, Debug)]
struct Placed {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    #[dlpack(device)]
    device: Device,
}

/// DEV-10, DEV-12: a struct that adopts memory of any device that the host can read, and keeps the device, can be exported again.
/// What it exports is host memory, whatever driver the memory is registered with.
#[test]
fn adopted_memory_is_host_memory() {
    for (device_type, device_id) in [(1, 0), (1, 2), (3, 0), (3, 1), (11, 0), (13, 0)] {
        let (_memory, mut foreign) = numbers(&[3]);
        (foreign.device.device_type, foreign.device.device_id) = (device_type, device_id);
        let placed = Placed::from_dlpack(import(&foreign)).unwrap();
        assert_eq!(placed.device, Device::CPU);
        let start = placed.values.as_ptr();
        let export = placed.into_dlpack().unwrap();
        assert_eq!(export.view().device(), Device::CPU);
        assert_eq!(export.view().as_ptr(), start.cast(), "shared, not copied");
        assert_eq!(export.view().to_vec::<i32>().unwrap(), [0, 1, 2]);
    }
}

#[derive(DLPack, FromDLPack, Debug)]
struct Adopted {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    #[dlpack(shape)]
    dims: [usize; 2],
    #[dlpack(strides)]
    strides: [isize; 2],
}

#[derive(DLPack, FromDLPack, Debug)]
struct AdoptedPairs {
    #[dlpack(data)]
    values: SharedBuffer<[i32; 2]>,
    #[dlpack(shape)]
    dims: [usize; 1],
    #[dlpack(strides)]
    strides: [isize; 1],
}

#[derive(FromDLPack)]
struct Cells {
    #[dlpack(data)]
    cells: SharedBuffer<bool>,
    #[dlpack(shape)]
    dims: Vec<usize>,
    #[dlpack(strides)]
    strides: Vec<isize>,
}

#[derive(DLPack, FromDLPack, Debug)]
struct Series {
    #[dlpack(data)]
    values: SharedBuffer<i32>,
    #[dlpack(strides)]
    strides: [isize; 1],
}

#[derive(DLPack, FromDLPack, PartialEq, Debug)]
enum Either {
    Floats(Vec<f32>),
    Pairs(Vec<[i32; 2]>),
    Numbers(Vec<i32>),
}

/// CAP-06, LAY-01, LAY-07: tensors with any strides are read in the order of their indices, and released as soon as they are
/// copied.
#[test]
fn values_are_in_the_order_of_their_indices() {
    let (_memory, plain) = numbers(&[2, 3]);
    for (foreign, expected) in [
        (plain.clone(), [0, 1, 2, 3, 4, 5]),
        (plain.clone().strides(&[1, 2]), [0, 2, 4, 1, 3, 5]),
        (plain.clone().strides(&[10, 3]), [0, 3, 6, 10, 13, 16]),
        (plain.clone().strides(&[0, 1]), [0, 1, 2, 0, 1, 2]),
        (
            Foreign {
                byte_offset: 4 * 20,
                ..plain.clone().strides(&[-10, -1])
            },
            [20, 19, 18, 10, 9, 8],
        ),
    ] {
        let before = foreign.deleted.times();
        let rows = Rows::from_dlpack(import(&foreign)).unwrap();
        assert_eq!(rows.values, expected);
        assert_eq!(rows.dims, [2, 3]);
        assert_eq!(foreign.deleted.times() - before, 1);

        let columns = Columns::from_dlpack(import(&foreign)).unwrap();
        let [a, b, c, d, e, f] = expected;
        assert_eq!(columns.values, [a, d, b, e, c, f]);

        let list = Vec::<i32>::from_dlpack(import(&foreign)).unwrap();
        assert_eq!(list, expected);
        assert_eq!(foreign.deleted.times() - before, 3);

        // An export of the values has the same values.
        for back in [rows.into_dlpack().unwrap(), columns.into_dlpack().unwrap()] {
            assert_eq!(back.view().to_vec::<i32>().unwrap(), expected);
        }
    }
}

/// The last axes belong to the element if they have its sizes.
#[test]
fn trailing_axes() {
    let (_memory, foreign) = numbers(&[2, 2, 3]);
    let pixels = Pixels::from_dlpack(import(&foreign)).unwrap();
    assert_eq!(pixels.dims, (2, 2));
    assert_eq!(
        pixels.values,
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    );
    let planar = foreign.clone().strides(&[2, 1, 4]);
    let pixels = Pixels::from_dlpack(import(&planar)).unwrap();
    assert_eq!(
        pixels.values,
        [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    );

    let (_memory, four) = numbers(&[2, 2, 4]);
    assert_eq!(
        Pixels::from_dlpack(import(&four)).unwrap_err(),
        Error::Extent {
            axis: 2,
            found: 4,
            needed: "3".into()
        }
    );
    assert_eq!(four.deleted.times(), 1);
}

/// ERR-11: of a tensor with one axis the error names its size, of others the number of elements.
#[test]
fn arrays_of_another_length_are_refused() {
    let refused = |tensor: Managed| <[u8; 3]>::from_dlpack(tensor).unwrap_err();
    let error = refused(vec![1_u8, 2].into_dlpack().unwrap());
    assert!(
        matches!(
            error,
            Error::Extent {
                axis: 0,
                found: 2,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(vec![[1_u8, 2], [3, 4]].into_dlpack().unwrap());
    let (found, needed) = (4, 3);
    assert_eq!(error, Error::Count { found, needed });
}

/// DTY-08, LAY-19, CAP-21: a tensor of another type, rank or size is refused with the found and the needed value, and released
/// once; faults 4.
#[test]
fn tensors_that_do_not_fit_are_refused() {
    let refused = |foreign: &Foreign| {
        let error = Rows::from_dlpack(import(foreign)).unwrap_err();
        assert_eq!(foreign.deleted.times(), 1);
        error
    };
    let (_memory, flat) = numbers(&[6]);
    assert_eq!(
        refused(&flat),
        Error::Rank {
            found: 1,
            needed: 2
        }
    );
    let (mut memory, deep) = numbers(&[1, 2, 3]);
    assert_eq!(
        refused(&deep),
        Error::Rank {
            found: 3,
            needed: 2
        }
    );
    let floats = Foreign::new(memory.as_mut_ptr().cast(), F32, &[2, 3]);
    assert_eq!(
        refused(&floats),
        Error::WrongDataType {
            found: DataType::F32,
            needed: DataType::I32
        }
    );
    let mut on_gpu = Foreign::new(memory.as_mut_ptr().cast(), I32, &[2, 3]);
    on_gpu.device.device_type = 2;
    assert_eq!(
        refused(&on_gpu),
        Error::NotOnHost {
            device: Device::cuda(0)
        }
    );
    // A size that the field's type cannot represent, of a tensor that exceeds its memory by strides of 0.
    let wide = Foreign::new(memory.as_mut_ptr().cast(), I32, &[70_000, 1, 3]).strides(&[0, 0, 1]);
    let error = Pixels::from_dlpack(import(&wide)).unwrap_err();
    assert!(matches!(error, Error::BadField { .. }), "{error:?}");
    assert_eq!(wide.deleted.times(), 1);

    let (_memory, three) = numbers(&[3]);
    let array = <[i32; 4]>::from_dlpack(import(&three));
    assert!(
        matches!(array, Err(Error::Extent { found: 3, .. })),
        "{array:?}"
    );
    assert_eq!(<[i32; 3]>::from_dlpack(import(&three)), Ok([0, 1, 2]));
    assert_eq!(three.deleted.times(), 2);

    let mut bytes = [0_u8, 1, 7];
    let bools = Foreign::new(bytes.as_mut_ptr(), BOOL, &[3]);
    let error = Vec::<bool>::from_dlpack(import(&bools)).unwrap_err();
    assert_eq!(
        (error, bools.deleted.times()),
        (Error::NotBool { found: 7 }, 1)
    );
}

/// Own faults 13: of a tensor that repeats few items many times, each item is checked once, and a tensor that does not fit is not
/// copied.
#[test]
fn endless_tensors() {
    let side: u32 = if cfg!(miri) { 1 << 8 } else { 1 << 20 };
    let (len, side) = (2 * side as usize, i64::from(side));
    let mut bytes = vec![1_u8; len];
    let data = bytes.as_mut_ptr();
    let endless = |shape: &[i64], strides: &[i64]| Foreign::new(data, BOOL, shape).strides(strides);
    let all = endless(&[1 << 50], &[0]);
    let array = <[bool; 4]>::from_dlpack(import(&all));
    assert!(matches!(array, Err(Error::Extent { found, .. }) if found == 1 << 50));
    let empty = <[[u8; 0]; 3]>::from_dlpack(import(&Foreign::new(data, U8, &[3, 0])));
    assert!(matches!(empty, Err(Error::Extent { found: 0, .. })));
    let imported = import(&all);
    let mut items = imported.view().iter::<bool>().unwrap();
    assert_eq!((items.len(), items.next()), (1 << 50, Some(true)));

    for (shape, strides, len) in [
        (&[1 << 50, 4][..], &[0, 1][..], 4),
        (&[1 << 30, 1 << 30, 4], &[0, 0, 1], 4),
        (&[2, 4], &[1, 1], 5),
        (&[side, side], &[1, 1], len - 1),
    ] {
        let adopted = Cells::from_dlpack(import(&endless(shape, strides))).unwrap();
        assert_eq!(adopted.cells.to_vec(), vec![true; len]);
        assert_eq!(adopted.strides.len(), shape.len());
        assert_eq!(adopted.dims.len(), shape.len());
    }
}

/// LAY-22: without a shape, the number of elements is that of the buffer, in which a repeated element is one.
#[test]
fn repeated_elements_need_a_shape() {
    let (_memory, foreign) = numbers(&[6]);
    let whole = Series::from_dlpack(import(&foreign)).unwrap();
    assert_eq!(whole.strides, [1]);
    assert_eq!(whole.into_dlpack().unwrap().view().shape(), [6]);
    let repeated = Series::from_dlpack(import(&foreign.clone().strides(&[0])));
    assert!(
        matches!(repeated, Err(Error::NotContiguous { .. })),
        "{repeated:?}"
    );
    let (_memory, foreign) = numbers(&[0]);
    let empty = Series::from_dlpack(import(&foreign.strides(&[0]))).unwrap();
    assert_eq!(empty.into_dlpack().unwrap().view().shape(), [0]);
    // The only axis is that of the elements, also for an enum that looks for a variant.
    let (_matrix, foreign) = numbers(&[2, 3]);
    let matrix = Series::from_dlpack(import(&foreign));
    assert_eq!(
        matrix.err(),
        Some(Error::Rank {
            found: 2,
            needed: 1
        })
    );
    assert!(!Series::fits(&import(&foreign).view()));
    // One element, or none, is not repeated.
    for len in [1, 0] {
        let (_memory, foreign) = numbers(&[len]);
        let short = Series::from_dlpack(import(&foreign.strides(&[0]))).unwrap();
        assert_eq!(short.into_dlpack().unwrap().view().shape(), [len]);
    }
}

/// CPY-12: adopted memory keeps its strides, and is re-exported without a copy.
#[test]
fn adopted_memory_keeps_its_layout() {
    let (memory, foreign) = numbers(&[2, 3]);
    for strides in [[3, 1], [1, 2], [2, 1], [0, 1]] {
        let foreign = foreign.clone().strides(&strides);
        let before = foreign.deleted.times();
        let adopted = Adopted::from_dlpack(import(&foreign)).unwrap();
        assert_eq!(adopted.values.as_ptr().cast_const(), memory.as_ptr());
        assert_eq!(adopted.dims, [2, 3]);
        assert_eq!(
            adopted.strides.map(|stride| i64::try_from(stride).unwrap()),
            strides
        );
        let again = Arc::new(adopted).to_dlpack().unwrap();
        let expected = Vec::<i32>::from_dlpack(import(&foreign)).unwrap();
        assert_eq!(again.view().to_vec::<i32>().unwrap(), expected);
        assert_eq!(again.view().version(), Some(Version::CURRENT));
        drop(again);
        assert_eq!(foreign.deleted.times() - before, 2);
    }
    // The first element must have the lowest address.
    let backwards = Foreign {
        byte_offset: 40,
        ..foreign.strides(&[-3, 1])
    };
    let error = Adopted::from_dlpack(import(&backwards)).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error:?}");
}

/// Own faults 2: the memory between the items of a tensor does not belong to it, so a tensor with gaps is not adopted.
#[test]
fn gaps_are_not_adopted() {
    let (_memory, foreign) = numbers(&[2, 3]);
    for strides in [[20, 5], [4, 1], [1, 3], [6, 2], [20, 1]] {
        let foreign = foreign.clone().strides(&strides);
        let before = foreign.deleted.times();
        let error = Adopted::from_dlpack(import(&foreign)).unwrap_err();
        assert!(
            matches!(error, Error::NotContiguous { .. }),
            "{strides:?}: {error:?}"
        );
        assert_eq!(foreign.deleted.times() - before, 1);
    }
}

/// LAY-22: elements of several items are adopted only if the items of each are contiguous.
#[test]
fn adopted_elements_are_whole() {
    let (_memory, foreign) = numbers(&[3, 2]);
    for (strides, expected) in [
        (&[2, 1], Some([[0, 1], [2, 3], [4, 5]])),
        (&[6, 1], None),
        (&[2, 3], None),
        (&[4, 2], None),
        (&[1, 3], None),
        (&[3, 1], None),
        (&[2, 0], None),
    ] {
        let foreign = foreign.clone().strides(strides);
        let before = foreign.deleted.times();
        let adopted = AdoptedPairs::from_dlpack(import(&foreign));
        match (adopted, expected) {
            (Ok(adopted), Some(expected)) => {
                assert_eq!(adopted.dims, [3]);
                let step = usize::try_from(adopted.strides[0]).unwrap();
                let found = [0, 1, 2].map(|row| adopted.values.get(row * step));
                assert_eq!(found, expected);
            }
            (Err(error), None) => assert!(
                matches!(
                    error,
                    Error::NotContiguous { .. } | Error::PartialStride { .. }
                ),
                "{error:?}"
            ),
            (found, _) => panic!("{strides:?}: {found:?}"),
        }
        assert_eq!(foreign.deleted.times() - before, 1);
    }
}

/// An enum selects the first variant that the tensor fits.
#[test]
fn enums() {
    let (mut memory, numbers) = numbers(&[2, 3]);
    assert_eq!(
        Either::from_dlpack(import(&numbers)),
        Ok(Either::Numbers(vec![0, 1, 2, 3, 4, 5]))
    );
    let pairs = Foreign::new(memory.as_mut_ptr().cast(), I32, &[2, 2]);
    assert_eq!(
        Either::from_dlpack(import(&pairs)),
        Ok(Either::Pairs(vec![[0, 1], [2, 3]]))
    );
    let bools = Foreign::new(memory.as_mut_ptr().cast(), BOOL, &[1]);
    assert_eq!(
        Either::from_dlpack(import(&bools)).unwrap_err(),
        Error::NoVariant {
            name: "Either",
            dtype: DataType::BOOL,
            rank: 1,
            variants: &[
                "Floats(Vec<f32>)",
                "Pairs(Vec<[i32; 2]>)",
                "Numbers(Vec<i32>)"
            ],
        }
    );
    assert_eq!(bools.deleted.times(), 1);
}
