//! The exported struct, byte by byte, as a consumer sees it.

#![expect(unsafe_code, reason = "reads exported structs as C code does")]

use core::ptr::{NonNull, null_mut};
use dlpack_core::abi::{
    CAPSULE_LEGACY, CAPSULE_LEGACY_USED, CAPSULE_VERSIONED, CAPSULE_VERSIONED_USED, DLDataType,
    DLManagedTensorVersioned, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor,
};
use dlpack_core::{
    Buffer, DLPack, DataType, Descriptor, Device, Element, Error, ExportRequest, Loan, Managed,
    Parts, Version,
};
use std::sync::Arc;

/// The fields of one exported tensor.
struct Seen {
    version: Version,
    flags: u64,
    tensor: DLTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// Reads every field, then calls the deleter.
fn read_and_release(managed: Managed) -> Seen {
    let raw = managed.into_raw();
    // SAFETY: the struct is valid until its deleter is called.
    let DLManagedTensorVersioned {
        version,
        manager_ctx,
        deleter,
        flags,
        dl_tensor: tensor,
    } = unsafe { raw.read() };
    assert!(!manager_ctx.is_null());
    let list = |start: *mut i64| {
        let len = usize::try_from(tensor.ndim).unwrap();
        assert_eq!(
            start.is_null(),
            len == 0,
            "null where there are no axes, and only there"
        );
        // SAFETY: a list that is not null has `ndim` entries.
        (0..len)
            .map(|axis| unsafe { start.wrapping_add(axis).read() })
            .collect()
    };
    let read_and_release = Seen {
        version: version.into(),
        flags,
        tensor,
        shape: list(tensor.shape),
        strides: list(tensor.strides),
    };
    // SAFETY: the deleter is called once, and nothing of the tensor is used afterwards.
    unsafe { deleter.expect("never null")(raw.as_ptr()) };
    read_and_release
}

/// Items with any annotation.
#[derive(Clone)]
struct Over<T: 'static> {
    items: Vec<T>,
    parts: Parts<'static>,
}

fn over<T: Clone>(items: &[T], parts: Parts<'static>) -> Over<T> {
    Over {
        items: items.to_vec(),
        parts,
    }
}

impl<T: Element> DLPack for Over<T> {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.parts.clone().describe(self.items.lend())
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.parts.clone().describe_mut(self.items.lend_mut())
    }
}

const COPY: ExportRequest = ExportRequest {
    copy: Some(true),
    ..ExportRequest::versioned()
};

/// NEG-08, NEG-09, CAP-08, ABI-11, DEV-02, DEV-03, DEV-04, FLG-01, LAY-01, LAY-02, LAY-08: every field of an export without
/// options; faults 5, 54, 58.
#[test]
fn every_field_of_a_default_export() {
    let vector = vec![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let address = vector.as_ptr();
    let found = read_and_release(vector.into_dlpack().unwrap());
    assert_eq!(found.version, Version::new(1, 3));
    assert_eq!(found.flags, 0);
    assert_eq!(found.tensor.data, address.cast_mut().cast());
    assert_eq!(Device::from(found.tensor.device), Device::CPU);
    assert_eq!(
        (
            found.tensor.device.device_type,
            found.tensor.device.device_id
        ),
        (1, 0)
    );
    assert_eq!(found.tensor.ndim, 2);
    assert_eq!(DataType::F32, DataType::new(2, 32, 1));
    assert_eq!(found.tensor.dtype, DataType::F32.into());
    assert_eq!((found.shape, found.strides), (vec![2, 3], vec![3, 1]));
    assert_eq!(found.tensor.byte_offset, 0);
}

/// NEG-04, NEG-05, NEG-08: the struct has version 1.3, whatever newer version is requested.
#[test]
fn the_struct_has_our_version() {
    for (major, minor) in [(1, 0), (1, 1), (1, 3), (1, 99), (2, 0), (99, 0)] {
        let request = ExportRequest {
            max_version: Some(Version::new(major, minor)),
            ..ExportRequest::default()
        };
        let found = read_and_release(vec![1_u8].into_dlpack_with(&request).unwrap());
        assert_eq!((found.version.major, found.version.minor), (1, 3));
    }
}

/// NEG-02, NEG-06, NEG-07, NEG-16: a legacy request is answered by the legacy struct, with the same tensor.
#[test]
fn a_legacy_export() {
    for max_version in [None, Some(Version::new(0, 8))] {
        let request = ExportRequest {
            max_version,
            ..ExportRequest::default()
        };
        let vector = vec![1_i16, 2, 3];
        let address = vector.as_ptr();
        let managed = vector.into_dlpack_with(&request).unwrap();
        assert_eq!(managed.view().version(), None);
        let raw = managed.into_legacy().unwrap();
        // SAFETY: the struct is valid until its deleter is called.
        let legacy = unsafe { raw.read() };
        assert_eq!(legacy.dl_tensor.data, address.cast_mut().cast());
        assert_eq!(
            (legacy.dl_tensor.ndim, legacy.dl_tensor.byte_offset),
            (1, 0)
        );
        assert!(!legacy.dl_tensor.shape.is_null() && !legacy.dl_tensor.strides.is_null());
        assert!(!legacy.manager_ctx.is_null());
        // SAFETY: the deleter is called once, and nothing of the tensor is used afterwards.
        unsafe { legacy.deleter.expect("never null")(raw.as_ptr()) };
    }
}

/// LAY-02, LAY-03, LAY-20: up to 64 axes, shape and strides with an entry for each, null without axes; faults 54, 55, 57.
#[test]
fn every_rank() {
    for rank in 0..=64 {
        let ones = [1_i64; 64];
        let parts = Parts::new().shape(&ones[..rank]);
        let found = read_and_release(over(&[7_u8], parts).into_dlpack().unwrap());
        assert_eq!(found.shape, ones[..rank]);
        assert_eq!(found.strides, ones[..rank]);
        assert!(!found.tensor.data.is_null());
    }
    let too_many = Parts::new().shape([1; 65]);
    assert_eq!(
        over(&[7_u8], too_many).into_dlpack().map(drop).unwrap_err(),
        Error::TooManyAxes {
            found: 65,
            most: 64
        }
    );
}

/// LAY-05, LAY-18: an empty tensor has a null address and contiguous strides, computed as if its empty axes had size 1; shared,
/// copied, legacy; faults 6, 7, 56.
#[test]
fn empty_tensors() {
    for (shape, strides) in [
        (&[0_i64][..], &[1_i64][..]),
        (&[0, 3], &[3, 1]),
        (&[3, 0], &[1, 1]),
        (&[3, 0, 5], &[5, 5, 1]),
        (&[0, 0, 0], &[1, 1, 1]),
        (&[1, 0, i64::MAX, 2], &[i64::MAX, i64::MAX, 2, 1]),
    ] {
        for request in [ExportRequest::versioned(), COPY] {
            let parts = Parts::new().shape(shape);
            let tensor = over(&[1_u32, 2], parts);
            let found = read_and_release(tensor.clone().into_dlpack_with(&request).unwrap());
            assert_eq!((&found.shape[..], &found.strides[..]), (shape, strides));
            assert!(found.tensor.data.is_null());
            assert_eq!(found.tensor.byte_offset, 0);
            let legacy = tensor.into_dlpack().unwrap().into_legacy().unwrap();
            // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
            let back = unsafe { Managed::from_legacy(legacy) }.unwrap();
            assert!(back.view().as_ptr().is_null());
        }
    }
    assert!(
        read_and_release(Vec::<f64>::new().into_dlpack().unwrap())
            .tensor
            .data
            .is_null()
    );
    assert!(
        read_and_release(vec![[0_u8; 0]; 9].into_dlpack().unwrap())
            .tensor
            .data
            .is_null()
    );
}

/// LAY-17, LAY-14, LAY-15: given strides are exported unchanged, also those of axes of size 1; computed strides are contiguous;
/// faults 52, 53.
#[test]
fn strides_are_kept() {
    for (shape, strides) in [
        (&[1_i64, 3][..], &[17_i64, 1][..]),
        (&[3, 1], &[1, -5]),
        (&[3], &[0]),
        (&[2, 2], &[2, -1]),
        (&[1, 1], &[i64::MAX, -i64::MAX]),
    ] {
        let parts = Parts::new().shape(shape).strides(strides).offset(1);
        let found = read_and_release(over(&[0_u8; 8], parts).into_dlpack().unwrap());
        assert_eq!((&found.shape[..], &found.strides[..]), (shape, strides));
    }
    let parts = Parts::new().shape([1, 4, 1]);
    assert_eq!(
        read_and_release(over(&[0_u8; 4], parts).into_dlpack().unwrap()).strides,
        [4, 1, 1]
    );
}

/// LAY-08, LAY-09: an offset is added to the address; only where `data` is a handle it becomes the byte offset; faults 58, 59,
/// 65.
#[test]
fn offsets() {
    let parts = Parts::new().offset(1).byte_offset(4);
    let tensor = over(&[0_u16, 1, 2, 3, 4], parts);
    let found = read_and_release(tensor.clone().into_dlpack().unwrap());
    assert_eq!((found.shape, found.tensor.byte_offset), (vec![2], 0));
    let shared = Arc::new(tensor).to_dlpack().unwrap();
    assert_eq!(shared.view().as_slice::<u16>().unwrap(), [3, 4]);

    /// Ten numbers of a device whose `data` is a handle.
    struct OnMetal;
    impl DLPack for OnMetal {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let handle = core::ptr::without_provenance::<f32>(0xa00);
            // SAFETY: the address is a Metal handle, and no code reads memory through it.
            let loan = unsafe { Loan::from_raw_parts(handle, 10, Device::metal(1)) };
            Parts::new().offset(3).describe(loan)
        }
    }
    let found = read_and_release(OnMetal.into_dlpack().unwrap());
    assert_eq!(found.tensor.data.addr(), 0xa00);
    assert_eq!((found.shape, found.tensor.byte_offset), (vec![7], 12));
    assert_eq!(Device::from(found.tensor.device), Device::metal(1));
}

/// LAY-12: a tensor starts at an address that its type allows; any other is refused; faults 86.
#[test]
fn alignment() {
    let bytes = [0_u8; 64];
    let (mut fine, mut refused) = (0, 0);
    for shift in 0..16 {
        let parts = Parts::new().elem::<f64>().byte_offset(shift).shape([2]);
        match parts.describe(Loan::from(&bytes[..])) {
            Ok(found) => {
                assert_eq!(found.as_ptr().addr() % align_of::<f64>(), 0);
                fine += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Misaligned { .. }), "{error:?}");
                refused += 1;
            }
        }
    }
    assert_eq!((fine, refused), (2, 14));

    /// Memory at any address.
    struct Shifted(usize, [u64; 3]);
    impl Buffer for Shifted {
        fn lend(&self) -> Loan<'_> {
            let start = self.1.as_ptr().wrapping_byte_add(self.0);
            // SAFETY: the memory has space for two values of eight bytes; `describe` refuses the address if it is not aligned.
            unsafe { Loan::from_raw_parts(start, 2, Device::CPU) }
        }
    }
    for shift in 0..8 {
        let shifted = Shifted(shift, [1; 3]);
        assert_eq!(shifted.describe().is_ok(), shift == 0);
        let exported = shifted.into_dlpack();
        match exported {
            Ok(_) => assert_eq!(shift, 0),
            Err(error) => assert!(matches!(error, Error::Misaligned { .. }), "{error:?}"),
        }
    }
}

/// CAP-12, CAP-03: each export has its own struct, shape and strides, so that one consumer's writes to them do not affect
/// another; faults 27, 28, 60.
#[test]
fn each_export_has_its_own_struct() {
    let shared = Arc::new([[1_u8, 2], [3, 4]]);
    let exports: [NonNull<DLManagedTensorVersioned>; 3] =
        core::array::from_fn(|_| shared.to_dlpack().unwrap().into_raw());
    // SAFETY: the struct is valid until its deleter is called, and no other code uses it.
    let first = unsafe { &mut *exports[0].as_ptr() };
    // SAFETY: shape and strides of this export have two entries each and belong to this consumer.
    unsafe { first.dl_tensor.shape.write(99) };
    // SAFETY: shape and strides of this export have two entries each and belong to this consumer.
    unsafe { first.dl_tensor.strides.write(-99) };
    first.flags = 0;
    first.dl_tensor.byte_offset = 77;
    for raw in exports.into_iter().skip(1) {
        // SAFETY: `into_raw` returned the pointer, and this is its only use.
        let managed = unsafe { Managed::from_raw(raw) }.unwrap();
        let view = managed.view();
        assert_eq!((view.shape(), view.strides()), (&[2, 2][..], &[2, 1][..]));
        assert!(view.is_read_only());
        assert_eq!(view.as_slice::<u8>().unwrap(), [1, 2, 3, 4]);
    }
    let deleter = first.deleter.unwrap();
    // SAFETY: the deleter is called once, and nothing of the tensor is used afterwards.
    unsafe { deleter(exports[0].as_ptr()) };
    assert_eq!(Arc::strong_count(&shared), 1);
}

/// CAP-11: the deleter uses only `manager_ctx`: a consumer may overwrite the other fields, or pass a copy of the struct.
#[test]
fn a_deleter_needs_its_context_only() {
    let shared = Arc::new([1_u8, 2]);
    let raw = shared.to_dlpack().unwrap().into_raw();
    // SAFETY: the struct is valid until its deleter is called, and no other code uses it.
    let tensor = unsafe { &mut *raw.as_ptr() };
    tensor.dl_tensor.shape = null_mut();
    tensor.dl_tensor.strides = null_mut();
    tensor.dl_tensor.data = null_mut();
    tensor.dl_tensor.ndim = -7;
    tensor.flags = !0;
    let deleter = tensor.deleter.unwrap();
    // SAFETY: the deleter is called once, and nothing of the tensor is used afterwards.
    unsafe { deleter(raw.as_ptr()) };
    assert_eq!(Arc::strong_count(&shared), 1);

    let raw = shared.to_dlpack().unwrap().into_raw();
    // SAFETY: the struct is valid until its deleter is called.
    let mut elsewhere = unsafe { raw.read() };
    let deleter = elsewhere.deleter.unwrap();
    // SAFETY: the deleter is called once, and nothing of the tensor is used afterwards.
    unsafe { deleter(&raw mut elsewhere) };
    assert_eq!(Arc::strong_count(&shared), 1);
}

/// CAP-01, CAP-02, CAP-03: the capsule names are constants with a terminating NUL; faults 21.
#[test]
fn names_are_static() {
    const NAMES: [(&core::ffi::CStr, &str); 4] = [
        (CAPSULE_LEGACY, "dltensor"),
        (CAPSULE_LEGACY_USED, "used_dltensor"),
        (CAPSULE_VERSIONED, "dltensor_versioned"),
        (CAPSULE_VERSIONED_USED, "used_dltensor_versioned"),
    ];
    for (name, expected) in NAMES {
        assert_eq!(name.to_str(), Ok(expected));
        assert_eq!(name.to_bytes_with_nul().last(), Some(&0));
    }
}

/// DTY-01, DTY-02, DTY-04, DTY-18: every Rust number type has its dtype, and its values survive a round trip; faults 71.
#[test]
fn all_types_survive_a_round_trip() {
    macro_rules! check {
        ($($type:ty: ($code:literal, $bits:literal), [$($value:expr),*];)*) => {$(
            let values: Vec<$type> = vec![$($value),*];
            let found = read_and_release(values.clone().into_dlpack().unwrap());
            let expected = DLDataType { code: $code, bits: $bits, lanes: 1 };
            assert_eq!(found.tensor.dtype, expected, stringify!($type));
            let raw = Arc::new(values.clone()).to_dlpack().unwrap().into_raw();
            // SAFETY: `into_raw` just returned the pointer, and this is its only use.
            let back = unsafe { Managed::from_raw(raw) }.unwrap();
            assert_eq!(back.view().as_slice::<$type>().unwrap(), values);
            assert_eq!(back.view().to_vec::<$type>().unwrap(), values);
            assert!(back.view().iter::<$type>().unwrap().eq(values));
        )*};
    }
    check! {
        bool: (6, 8), [true, false];
        u8: (1, 8), [0, u8::MAX];
        u16: (1, 16), [0, u16::MAX];
        u32: (1, 32), [0, u32::MAX];
        u64: (1, 64), [0, u64::MAX];
        u128: (1, 128), [0, u128::MAX];
        i8: (0, 8), [i8::MIN, i8::MAX];
        i16: (0, 16), [i16::MIN, i16::MAX];
        i32: (0, 32), [i32::MIN, i32::MAX];
        i64: (0, 64), [i64::MIN, i64::MAX];
        i128: (0, 128), [i128::MIN, i128::MAX];
        f32: (2, 32), [f32::MIN, f32::INFINITY, -0.0];
        f64: (2, 64), [f64::MIN_POSITIVE, f64::NEG_INFINITY, -0.0];
    }
}

/// DTY-05, DTY-07, DTY-12, DTY-13, DTY-14, FLG-07: a dtype without a Rust type is given as a value; padding is a flag; faults 73.
#[test]
fn types_by_value() {
    for (dtype, itemsize_bits, flags) in [
        (DataType::C64, 64, 0),
        (DataType::F32.with_lanes(4), 128, 0),
        (DataType::F8_E4M3FN, 8, 0),
        (DataType::F4_E2M1FN, 4, 0),
        (DataType::F4_E2M1FN.with_lanes(2), 8, 0),
        (
            DataType::F4_E2M1FN.padded(),
            8,
            DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
        ),
        (
            DataType::F6_E3M2FN.padded(),
            8,
            DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
        ),
        (DataType::U8.padded(), 8, 0),
    ] {
        let bytes: Vec<u64> = (0..6).map(|n| n * 0x0101_0101_0101_0101).collect();
        let tensor = over(&bytes, Parts::new().dtype(dtype));
        let found = read_and_release(tensor.clone().into_dlpack().unwrap());
        assert_eq!(found.tensor.dtype, dtype.into(), "{dtype}");
        assert_eq!(found.shape, [48 * 8 / itemsize_bits], "{dtype}");
        assert_eq!(found.flags, flags, "{dtype}");
        let copied = tensor.clone().into_dlpack_with(&COPY).unwrap();
        assert_eq!(copied.view().dtype(), dtype);
        let found = read_and_release(copied);
        assert_eq!(
            found.flags,
            flags | DLPACK_FLAG_BITMASK_IS_COPIED,
            "{dtype}"
        );

        let legacy = tensor.into_dlpack_with(&ExportRequest::default()).map(drop);
        let expected = if flags == 0 {
            Ok(())
        } else {
            Err(Error::LegacyPadded { dtype })
        };
        assert_eq!(legacy, expected);
    }
    // Items that share bytes and have gaps cannot be copied item by item, so they are refused.
    let gaps = Parts::new()
        .dtype(DataType::F4_E2M1FN)
        .shape([2])
        .strides([3]);
    let error = over(&[0_u8; 8], gaps)
        .into_dlpack_with(&COPY)
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::PackedStrides { .. }), "{error:?}");
}

/// CPY-01, CPY-04, CPY-06, CPY-07, CPY-09, CPY-14, LAY-10: a copy is row-major, aligned to 256 bytes, writable, and not shared
/// with other code; faults 79, 88.
#[test]
fn copies() {
    for len in [1_u8, 2, 63, 64, 200] {
        let items: Vec<u8> = (0..len).collect();
        let parts = Parts::new().shape([i64::from(len)]).strides([-1]);
        let reversed = Arc::new(over(&items, parts.offset(i64::from(len) - 1)));
        let mut copies = [
            reversed.to_dlpack_with(&COPY).unwrap(),
            reversed.to_dlpack_with(&COPY).unwrap(),
            reversed.to_dlpack_with(&ExportRequest::default()).unwrap(),
        ];
        let expected: Vec<u8> = (0..len).rev().collect();
        for copy in &copies {
            let view = copy.view();
            assert_eq!(view.as_ptr().addr() % 256, 0);
            assert_eq!(
                (view.as_slice::<u8>().unwrap(), view.strides()),
                (&expected[..], &[1][..])
            );
            assert_eq!(view.is_copied(), view.version().is_some());
        }
        let mine = copies[0].as_mut_slice::<u8>().unwrap();
        mine.fill(0xee);
        assert_eq!(copies[1].view().as_slice::<u8>().unwrap(), expected);
        assert_eq!(reversed.items, items);
        let [first, ..] = copies;
        assert_eq!(read_and_release(first).flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    }
}

/// FLG-02, FLG-05, LAY-16: a shared export is read-only, a moved one is writable, and one with overlapping items never is; faults
/// 29, 30, 75.
#[test]
fn shared_exports_are_read_only_and_moved_ones_writable() {
    let plain = over(&[0_u8; 4], Parts::new());
    assert_eq!(
        read_and_release(plain.clone().into_dlpack().unwrap()).flags,
        0
    );
    let shared = Arc::new(plain.clone()).to_dlpack().unwrap();
    assert_eq!(
        read_and_release(shared).flags,
        DLPACK_FLAG_BITMASK_READ_ONLY
    );
    let broadcast = Parts::new().shape([5]).strides([0]);
    let found = read_and_release(over(&[0_u8; 4], broadcast.clone()).into_dlpack().unwrap());
    assert_eq!(found.flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    let copied = over(&[3_u8; 4], broadcast).into_dlpack_with(&COPY).unwrap();
    assert_eq!(copied.view().as_slice::<u8>().unwrap(), [3; 5]);
    assert_eq!(
        read_and_release(copied).flags,
        DLPACK_FLAG_BITMASK_IS_COPIED
    );
    let locked = over(&[0_u8; 4], Parts::new().read_only())
        .into_dlpack()
        .unwrap();
    assert_eq!(
        read_and_release(locked).flags,
        DLPACK_FLAG_BITMASK_READ_ONLY
    );
    // The vector was moved, so that only the consumer writes it.
    let mut moved = plain.into_dlpack().unwrap();
    moved
        .as_mut_slice::<u8>()
        .unwrap()
        .copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(moved.view().to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
}

/// Own faults 1: a consumer does not know Rust's rules for `bool`, so memory of `bool`s is exported read-only; a copy is
/// writable.
#[test]
fn bools_are_not_written_in_place() {
    fn flags<T: DLPack + Clone + 'static>(value: &T) -> [u64; 3] {
        [
            read_and_release(value.clone().into_dlpack().unwrap()).flags,
            read_and_release(value.clone().into_dlpack_with(&COPY).unwrap()).flags,
            read_and_release(
                value
                    .clone()
                    .into_dlpack_with(&ExportRequest::versioned())
                    .unwrap(),
            )
            .flags,
        ]
    }

    #[derive(Clone, Element)]
    #[repr(C)]
    struct Flags {
        read_and_release: bool,
        known: bool,
    }

    const LOCKED: [u64; 3] = [
        DLPACK_FLAG_BITMASK_READ_ONLY,
        DLPACK_FLAG_BITMASK_IS_COPIED,
        DLPACK_FLAG_BITMASK_READ_ONLY,
    ];
    let flag = Flags {
        read_and_release: true,
        known: false,
    };
    assert_eq!(flags(&vec![true, false]), LOCKED);
    assert_eq!(flags(&[true, false]), LOCKED);
    assert_eq!(flags(&vec![[true, false]; 3]), LOCKED);
    assert_eq!(flags(&vec![flag.clone(); 3]), LOCKED);
    assert_eq!(flags(&vec![1_u8, 0])[0], 0, "the control");
    assert_eq!(
        flags(&over(&[true, false], Parts::new().elem::<u8>())),
        LOCKED,
        "as bytes"
    );

    let mut cells = [true, false];
    // SAFETY: the array outlives the loan and is accessed only through it.
    let raw = unsafe { Loan::from_raw_parts_mut(cells.as_mut_ptr(), 2, Device::CPU) };
    assert!(Parts::new().describe(raw).unwrap().is_read_only());
    // A `SharedBuffer` accepts any byte as a `bool`, so it is writable.
    let shared = dlpack_core::SharedBuffer::copied_from(&[true, false]).unwrap();
    assert_eq!(read_and_release(shared.into_dlpack().unwrap()).flags, 0);
}

/// CAP-18: storage inside the value is described at its final address, with its own alignment.
#[test]
fn inline_storage() {
    #[repr(align(128))]
    struct Inline([u16; 5]);
    impl Buffer for Inline {
        fn lend(&self) -> Loan<'_> {
            Loan::from(&self.0[..])
        }
    }
    let managed = Inline([1, 2, 3, 4, 5]).into_dlpack().unwrap();
    assert_eq!(managed.view().as_ptr().addr() % 128, 0);
    let raw = managed.into_raw();
    // SAFETY: `into_raw` just returned the pointer, and this is its only use.
    let back = unsafe { Managed::from_raw(raw) }.unwrap();
    assert_eq!(back.view().as_slice::<u16>().unwrap(), [1, 2, 3, 4, 5]);
}
