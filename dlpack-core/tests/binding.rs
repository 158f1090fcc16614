//! Functions that a binding to another language calls: numbers of any type, slices without an export block, and records.

#![expect(unsafe_code, reason = "makes foreign tensors, and views a slice")]

mod made;

use core::ptr::null_mut;
use dlpack_core::abi::{
    DLDataType, DLTensor, kDLBfloat, kDLBool, kDLComplex, kDLFloat, kDLInt, kDLOpaqueHandle,
    kDLUInt,
};
use dlpack_core::binding::{
    AnyNumber, Handover, Numbers, Pick, PickedView, Records, TensorSlice, copy_numbers, hand_over,
    is_plain, only_number, share_allocation, zeroed_like,
};
use dlpack_core::{
    DLPack, Device, Error, ExportRequest, Layout, Managed, Parts, Record, SharedBuffer, Version,
};
use made::Foreign;

const fn dtype(code: u8, bits: u8) -> DLDataType {
    DLDataType {
        code,
        bits,
        lanes: 1,
    }
}

/// A tensor over bytes, which outlive it in each test.
fn tensor_over(bytes: &mut [u8], dtype: DLDataType, shape: &[i64]) -> Managed {
    let foreign = Foreign::new(bytes.as_mut_ptr(), dtype, shape);
    // SAFETY: a valid struct over `bytes`, which the caller keeps and does not write while the tensor lives.
    unsafe { Managed::from_raw(foreign.versioned()) }.unwrap()
}

/// Aligned to 16 bytes, as the widest items have to be.
#[repr(align(16))]
struct Aligned([u8; 32]);

#[test]
fn numbers_of_every_type_keep_their_values() {
    let cases: &[(DLDataType, &[u8], AnyNumber)] = &[
        (dtype(kDLBool, 8), &[2], AnyNumber::Bool(true)),
        (dtype(kDLBool, 8), &[0], AnyNumber::Bool(false)),
        (dtype(kDLInt, 8), &[0xfe], AnyNumber::Signed(-2)),
        (
            dtype(kDLInt, 16),
            &(-300_i16).to_ne_bytes(),
            AnyNumber::Signed(-300),
        ),
        (
            dtype(kDLInt, 32),
            &i32::MIN.to_ne_bytes(),
            AnyNumber::Signed(i32::MIN.into()),
        ),
        (
            dtype(kDLInt, 64),
            &i64::MAX.to_ne_bytes(),
            AnyNumber::Signed(i64::MAX.into()),
        ),
        (
            dtype(kDLInt, 128),
            &i128::MIN.to_ne_bytes(),
            AnyNumber::Signed(i128::MIN),
        ),
        (dtype(kDLUInt, 8), &[0xfe], AnyNumber::Unsigned(254)),
        (
            dtype(kDLUInt, 16),
            &0xabcd_u16.to_ne_bytes(),
            AnyNumber::Unsigned(0xabcd),
        ),
        (
            dtype(kDLUInt, 32),
            &u32::MAX.to_ne_bytes(),
            AnyNumber::Unsigned(u32::MAX.into()),
        ),
        (
            dtype(kDLUInt, 64),
            &(u64::MAX - 1).to_ne_bytes(),
            AnyNumber::Unsigned((u64::MAX - 1).into()),
        ),
        (
            dtype(kDLOpaqueHandle, 64),
            &7_u64.to_ne_bytes(),
            AnyNumber::Unsigned(7),
        ),
        (
            dtype(kDLFloat, 16),
            &0xc100_u16.to_ne_bytes(),
            AnyNumber::Float(-2.5),
        ),
        (
            dtype(kDLBfloat, 16),
            &0x3fc0_u16.to_ne_bytes(),
            AnyNumber::Float(1.5),
        ),
        (
            dtype(kDLFloat, 32),
            &0.1_f32.to_ne_bytes(),
            AnyNumber::Float(0.1_f32.into()),
        ),
        (
            dtype(kDLFloat, 64),
            &0.1_f64.to_ne_bytes(),
            AnyNumber::Float(0.1),
        ),
        (
            dtype(kDLComplex, 64),
            &[1.5_f32.to_ne_bytes(), (-2.0_f32).to_ne_bytes()].concat(),
            AnyNumber::Complex(1.5, -2.0),
        ),
        (
            dtype(kDLComplex, 128),
            &[1.5_f64.to_ne_bytes(), (-2.25_f64).to_ne_bytes()].concat(),
            AnyNumber::Complex(1.5, -2.25),
        ),
    ];
    for (dtype, bytes, expected) in cases {
        let mut memory = Aligned([0; 32]);
        // Twice, so that the second number shows the size of the first.
        memory.0[..bytes.len()].copy_from_slice(bytes);
        memory.0[bytes.len()..2 * bytes.len()].copy_from_slice(bytes);
        let pair = tensor_over(&mut memory.0, *dtype, &[2]);
        let mut numbers = Numbers::NONE;
        copy_numbers(&pair.view(), &mut numbers).unwrap();
        assert!(numbers.eq([*expected; 2]), "{dtype:?}");
        assert_eq!(only_number(&pair.view()), Ok(None));
        drop(pair);
        let one = tensor_over(&mut memory.0, *dtype, &[1, 1]);
        assert_eq!(only_number(&one.view()), Ok(Some(*expected)), "{dtype:?}");
    }
}

#[test]
fn an_item_with_lanes_is_not_one_number() {
    let mut memory = Aligned([7; 32]);
    let pair = DLDataType {
        lanes: 2,
        ..dtype(kDLUInt, 8)
    };
    let tensor = tensor_over(&mut memory.0, pair, &[1]);
    assert_eq!(only_number(&tensor.view()), Ok(None));
    let mut numbers = Numbers::NONE;
    copy_numbers(&tensor.view(), &mut numbers).unwrap();
    assert!(numbers.eq([AnyNumber::Unsigned(7); 2]));
    let empty = Vec::<u8>::new().into_dlpack().unwrap();
    assert_eq!(only_number(&empty.view()), Ok(None));
}

/// Selects a view of a tensor.
fn select(
    tensor: &Managed,
    picks: impl FnOnce(&mut PickedView<'_>) -> Result<(), Error>,
) -> Result<TensorSlice, Error> {
    let mut slice = TensorSlice::NONE;
    slice.select(tensor, None, picks, |error| error)?;
    Ok(slice)
}

#[test]
fn picks_report_the_axis_that_comes_next() {
    let tensor = [[[0_u8; 4]; 3]; 2].into_dlpack().unwrap();
    let picks = |view: &mut PickedView<'_>| {
        assert_eq!(view.shape(), [2, 3, 4]);
        assert_eq!(view.next_axis(), Some((0, 2)));
        view.pick(&Pick::NewAxis)?;
        assert_eq!(view.next_axis(), Some((0, 2)));
        view.pick(&Pick::Index(1))?;
        assert_eq!(view.next_axis(), Some((1, 3)));
        view.keep(1)?;
        assert_eq!(view.next_axis(), Some((2, 4)));
        view.pick(&Pick::Slice(1..4, 2))?;
        assert_eq!(view.next_axis(), None);
        Ok(())
    };
    let slice = select(&tensor, picks).unwrap();
    // SAFETY: a slice of `tensor`.
    let view = unsafe { slice.view(&tensor) };
    assert_eq!(
        (view.shape(), view.strides()),
        (&[1, 3, 2][..], &[1, 4, 2][..])
    );
    assert_eq!(view.as_ptr(), tensor.view().as_ptr().wrapping_add(13));
}

/// The first index, the number of indices and the stride for each step.
#[test]
fn steps_select_as_many_indices_as_they_reach() {
    let tensor = [0_u8, 1, 2, 3, 4].into_dlpack().unwrap();
    let cases: &[(isize, &[u8])] = &[
        (1, &[0, 1, 2, 3, 4]),
        (2, &[0, 2, 4]),
        (4, &[0, 4]),
        (5, &[0]),
        (-1, &[4, 3, 2, 1, 0]),
        (-2, &[4, 2, 0]),
        (-4, &[4, 0]),
        (-5, &[4]),
    ];
    for &(step, expected) in cases {
        let slice = select(&tensor, |view| view.pick(&Pick::Slice(0..5, step))).unwrap();
        // SAFETY: a slice of `tensor`.
        let view = unsafe { slice.view(&tensor) };
        assert_eq!(view.to_vec::<u8>().unwrap(), expected, "{step}");
        // The stride of a single index stays what it was.
        let stride = if expected.len() > 1 { step as i64 } else { 1 };
        assert_eq!(view.strides(), [stride], "{step}");
    }
    for step in [2, -2] {
        let empty = select(&tensor, |view| view.pick(&Pick::Slice(2..2, step))).unwrap();
        // SAFETY: a slice of `tensor`.
        assert_eq!(unsafe { empty.view(&tensor) }.shape(), [0]);
    }
}

/// The view of a slice is that of its export: in the newest version, and not marked as a copy, even if the whole tensor is one.
#[test]
fn a_slice_of_a_copy_is_no_copy() {
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copy = vec![1_u8, 2, 3].into_dlpack().unwrap();
    let copy = copy.into_dlpack_with(&request).unwrap();
    assert!(copy.view().is_copied());
    let slice = select(&copy, |view| view.pick(&Pick::Slice(1..3, 1))).unwrap();
    // SAFETY: a slice of `copy`.
    let view = unsafe { slice.view(&copy) };
    assert_eq!(view.version(), Some(Version::CURRENT));
    assert!(!view.is_copied());
    assert_eq!(view.to_vec::<u8>().unwrap(), [2, 3]);
    let mut bytes = [1, 2, 3];
    let mut old = Foreign::new(bytes.as_mut_ptr(), dtype(kDLUInt, 8), &[3]);
    old.version = (1, 0);
    // SAFETY: a valid struct over `bytes`, which outlives the tensor.
    let old = unsafe { Managed::from_raw(old.versioned()) }.unwrap();
    let slice = select(&old, |view| view.pick(&Pick::Slice(1..3, 1))).unwrap();
    // SAFETY: a slice of `old`.
    let view = unsafe { slice.view(&old) };
    assert_eq!(view.version(), Some(Version::CURRENT));
}

#[test]
fn a_layout_returns_its_lists() {
    let layout = Layout::strided([2, 3], [8, -2]).unwrap();
    assert_eq!((layout.shape(), layout.strides()), (&[2, 3], &[8, -2]));
}

#[derive(Record, Clone, Copy)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
}

#[test]
fn records_are_lent_from_values_and_from_bytes() {
    let mut trades = [Trade {
        price: 1.5,
        size: 2,
    }; 3];
    let address = trades.as_ptr().cast::<u8>();
    let records = Records::of(&trades);
    assert_eq!(
        (records.len(), records.is_empty(), records.as_ptr()),
        (3, false, address)
    );
    let records = Records::of_mut(&mut trades);
    assert_eq!((records.len(), records.as_ptr()), (3, address));
    assert!(Records::of::<Trade>(&[]).is_empty());
    let bytes = [0; 48];
    let records = Records::of_bytes(&bytes, Trade::LAYOUT).unwrap();
    assert_eq!((records.len(), records.as_ptr()), (3, bytes.as_ptr()));
    assert!(Records::of_bytes(&bytes[..47], Trade::LAYOUT).is_none());
    assert!(
        Records::of_bytes(&bytes[..0], Trade::LAYOUT)
            .unwrap()
            .is_empty()
    );
}

/// A struct with the owner of the memory can be taken back; any other result is a tensor like every other.
#[test]
fn only_a_tensor_that_keeps_its_owner_is_handed_over_as_a_struct() {
    let bytes = vec![1_u8, 2, 3];
    let hand_over = |request: &ExportRequest| {
        let mut described = bytes.describe().unwrap();
        // SAFETY: the bytes outlive the tensor, and no code writes them.
        unsafe { hand_over(|| (), &mut described, request) }.unwrap()
    };
    match hand_over(&ExportRequest::versioned()) {
        Handover::Kept(tensor) => {
            // SAFETY: a struct that this crate made, whose deleter was not called.
            let tensor = unsafe { Managed::from_raw(tensor) }.unwrap();
            assert_eq!(tensor.view().as_ptr(), bytes.as_ptr());
        }
        Handover::Other(_) => panic!("the owner is kept"),
    }
    let copied = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let legacy = ExportRequest::default();
    for request in [copied, legacy] {
        let Handover::Other(tensor) = hand_over(&request) else {
            panic!("a copy has no owner, and the legacy struct no place for more: {request:?}");
        };
        assert_eq!(tensor.view().to_vec::<u8>().unwrap(), bytes);
    }
}

#[test]
fn a_tensor_that_was_made_for_its_export_is_not_plain() {
    let bytes = [1_u8, 2, 3];
    let described = bytes.describe().unwrap();
    assert!(is_plain(&described));
    assert!(!described.is_made_on_request());
    let made = Parts::new().via(bytes.into_dlpack().unwrap()).unwrap();
    assert!(!is_plain(&made));
    assert!(made.is_made_on_request());
}

#[test]
fn zeros_are_made_like_a_prototype_on_the_cpu_alone() {
    let mut shape = [2, 3];
    let mut prototype = DLTensor {
        data: null_mut(),
        device: Device::CPU.into(),
        ndim: 2,
        dtype: dtype(kDLInt, 16),
        shape: shape.as_mut_ptr(),
        strides: null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the prototype has a shape of two entries.
    let tensor = unsafe { zeroed_like(&prototype) }.unwrap();
    assert_eq!(tensor.view().shape(), [2, 3]);
    assert_eq!(tensor.view().to_vec::<i16>().unwrap(), [0; 6]);
    let device = Device::cuda(0);
    prototype.device = device.into();
    // SAFETY: the prototype has a shape of two entries.
    let elsewhere = unsafe { zeroed_like(&prototype) }.map(drop);
    assert_eq!(elsewhere, Err(Error::CannotAllocate { device }));
}

#[test]
fn only_a_shared_buffer_has_an_allocation_to_share() {
    let buffer = SharedBuffer::<f32>::zeroed(3).unwrap();
    assert!(share_allocation(&buffer.describe().unwrap()).is_some());
    assert!(share_allocation(&[1_u8].describe().unwrap()).is_none());
}
