//! Tensors of other producers, valid and invalid: which are accepted, which are refused, and that each is released once.

#![expect(unsafe_code, reason = "makes C structs by hand and takes them over")]

mod made;

use core::ptr::{NonNull, null_mut, without_provenance_mut};
use dlpack_core::abi::{
    DLDevice, DLManagedTensorVersioned, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor,
};
use dlpack_core::binding::{AnyNumber, is_own_copy, only_number};
use dlpack_core::request::Transfer;
use dlpack_core::{DLPack, DataType, Device, DeviceType, Error, ExportRequest, Managed, Version};
use dlpack_core::{Descriptor, Parts};
use made::{BOOL, Foreign, I32, U8, dtype};
use std::sync::{Arc, Mutex};

/// A vector for tensors that it outlives, and its address.
fn memory<T: Copy>(values: &[T]) -> (Vec<T>, *mut u8) {
    let mut values = values.to_vec();
    let start = values.as_mut_ptr().cast();
    (values, start)
}

/// Imports a tensor whose lists and memory are as long as it says, or which is refused before they are read.
fn import(foreign: &Foreign) -> Result<Managed, Error> {
    // SAFETY: shape, strides and memory are as long as the tensor says, or are not read. The tests keep the memory, and do not
    // write it while a tensor over it lives.
    unsafe { Managed::from_raw(foreign.versioned()) }
}

/// Imports the tensor in the legacy struct.
fn import_legacy(foreign: &Foreign) -> Result<Managed, Error> {
    // SAFETY: shape, strides and memory are as long as the tensor says, or are not read. The tests keep the memory, and do not
    // write it while a tensor over it lives.
    unsafe { Managed::from_legacy(foreign.legacy()) }
}

/// Asserts that both structs are refused with the same error, and released once each.
fn refused(foreign: &Foreign) -> Error {
    let before = foreign.deleted.times();
    let error = import(foreign).expect_err("refused");
    assert_eq!(
        foreign.deleted.times(),
        before + 1,
        "released once: {error}"
    );
    assert_eq!(import_legacy(foreign).unwrap_err(), error);
    assert_eq!(
        foreign.deleted.times(),
        before + 2,
        "released once: {error}"
    );
    error
}

/// Asserts that both structs are accepted, and released once each.
fn accepted(foreign: &Foreign, look: impl Fn(&Managed)) {
    let before = foreign.deleted.times();
    for managed in [import(foreign), import_legacy(foreign)] {
        let managed = managed.expect("accepted");
        look(&managed);
    }
    let expected = if foreign.has_deleter {
        before + 2
    } else {
        before
    };
    assert_eq!(foreign.deleted.times(), expected, "released once");
}

fn malformed(foreign: &Foreign) -> &'static str {
    match refused(foreign) {
        Error::Malformed { what, .. } => what,
        error => panic!("{error:?}"),
    }
}

/// Memory that ends at a page without access, so that any access behind it is fatal.
#[cfg(all(target_os = "linux", not(miri)))]
mod forbidden {
    use core::ffi::{c_int, c_long, c_void};
    use core::ptr::null_mut;

    pub(crate) const PAGE: usize = 64 << 10;

    unsafe extern "C" {
        fn mmap(a: *mut c_void, n: usize, p: c_int, f: c_int, fd: c_int, o: c_long) -> *mut c_void;
        fn munmap(address: *mut c_void, len: usize) -> c_int;
    }

    /// A page to use, followed by one without access.
    pub(crate) struct Pages(*mut u8);

    impl Pages {
        pub(crate) fn new() -> Self {
            const NONE: c_int = 0;
            const READ_WRITE: c_int = 3;
            const PRIVATE_ANONYMOUS: c_int = 0x22;
            const FIXED: c_int = 0x10;
            // SAFETY: a new anonymous mapping at an address of the kernel's choice.
            let start = unsafe { mmap(null_mut(), 2 * PAGE, NONE, PRIVATE_ANONYMOUS, -1, 0) };
            assert!(start.addr() != usize::MAX, "two pages can be had");
            // SAFETY: the first page of this mapping, which is not used yet.
            let first = unsafe { mmap(start, PAGE, READ_WRITE, PRIVATE_ANONYMOUS | FIXED, -1, 0) };
            assert_eq!(first, start);
            Self(start.cast())
        }

        /// The first byte without access.
        pub(crate) fn end(&self) -> *mut u8 {
            self.0.wrapping_add(PAGE)
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: `new` mapped both pages, and no tensor over them is left.
            unsafe { munmap(self.0.cast(), 2 * PAGE) };
        }
    }
}

/// NEG-12, ABI-07, NEG-11: of a struct with another major version only `version` and `deleter` are read: the fields after `flags`
/// lie on a page without access.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn another_major_version_is_released_unread() {
    use core::mem::offset_of;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use dlpack_core::abi::{DLManagedTensorVersioned, DLPackVersion};
    type Deleter = unsafe extern "C" fn(*mut DLManagedTensorVersioned);
    static DELETED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn delete(_: *mut DLManagedTensorVersioned) {
        DELETED.fetch_add(1, Ordering::SeqCst);
    }

    let pages = forbidden::Pages::new();
    let header = offset_of!(DLManagedTensorVersioned, dl_tensor);
    let tensor = pages
        .end()
        .wrapping_sub(header)
        .cast::<DLManagedTensorVersioned>();
    for (major, minor) in [(2, 0), (0, 8), (0, 0), (u32::MAX, 3)] {
        for deleter in [None, Some(delete as Deleter)] {
            let before = DELETED.load(Ordering::SeqCst);
            let at = offset_of!(DLManagedTensorVersioned, version);
            let version = DLPackVersion { major, minor };
            // SAFETY: the fields before `dl_tensor` lie on the first page.
            unsafe {
                tensor
                    .wrapping_byte_add(at)
                    .cast::<DLPackVersion>()
                    .write(version)
            };
            let at = offset_of!(DLManagedTensorVersioned, deleter);
            // SAFETY: the fields before `dl_tensor` lie on the first page.
            unsafe {
                tensor
                    .wrapping_byte_add(at)
                    .cast::<Option<Deleter>>()
                    .write(deleter)
            };
            let pointer = NonNull::new(tensor).unwrap();
            // SAFETY: the fields before `dl_tensor` exist, and an import reads no others of another major version.
            let error = unsafe { Managed::from_raw(pointer) }.unwrap_err();
            assert_eq!(
                error,
                Error::UnsupportedMajor {
                    found: Version::new(major, minor),
                    supported: Version::CURRENT
                }
            );
            let times = usize::from(deleter.is_some());
            assert_eq!(DELETED.load(Ordering::SeqCst) - before, times);
        }
    }
}

/// ERR-11, ERR-12: data is not read if the tensor is refused, re-exported or only inspected: it lies on a page without access;
/// faults 68.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn data_is_not_read_until_it_is_asked_for() {
    use made::F32;

    let pages = forbidden::Pages::new();
    let valid = Foreign::new(pages.end(), F32, &[4, 5]);
    refused(&Foreign {
        dtype: dtype(99, 8, 1),
        ..valid.clone()
    });
    refused(&Foreign {
        ndim: Some(-1),
        ..valid.clone()
    });
    accepted(&valid, |managed| {
        let view = managed.view();
        assert_eq!((view.shape(), view.len_bytes()), (&[4, 5][..], 80));
        assert!(view.to_vec::<i32>().is_err() && view.as_slice::<[f32; 3]>().is_err());
        assert!(view.iter::<bool>().is_err());
    });
    // A re-export and its import.
    let managed = import_legacy(&valid).unwrap();
    let raw = managed.into_raw();
    // SAFETY: `into_raw` just returned the pointer, and this is its only use.
    let again = unsafe { Managed::from_raw(raw) }.unwrap();
    let legacy = ExportRequest {
        copy: Some(false),
        ..ExportRequest::default()
    };
    assert_eq!(
        again.into_dlpack_with(&legacy).unwrap_err(),
        Error::LegacyReadOnly
    );
}

/// NEG-13, FLG-08, FLG-10: newer minor versions, unknown flags and flags of older versions are accepted.
#[test]
fn newer_minors_and_unknown_flags_are_accepted() {
    let (_memory, data) = memory(&[1_i32, 2, 3]);
    for (minor, flags) in [
        (0, 0),
        (1, 0),
        (3, 0),
        (99, 0),
        (u32::MAX, 1 << 40),
        (3, !7),
    ] {
        let foreign = Foreign {
            version: (1, minor),
            flags,
            ..Foreign::new(data, I32, &[3])
        };
        accepted(&foreign, |managed| {
            let view = managed.view();
            assert_eq!(view.as_slice::<i32>().unwrap(), [1, 2, 3]);
            assert!(!view.is_copied());
        });
        let managed = import(&foreign).unwrap();
        assert_eq!(managed.view().version(), Some(Version::new(1, minor)));
        assert!(!managed.view().is_read_only());
    }
}

/// CAP-09: a tensor without a deleter needs no release.
#[test]
fn a_null_deleter_is_accepted() {
    let (_memory, data) = memory(&[1_u8, 2]);
    let foreign = Foreign {
        has_deleter: false,
        ..Foreign::new(data, U8, &[2])
    };
    let tensor = foreign.versioned();
    // SAFETY: a valid tensor over memory that outlives it; its struct is freed below, after its last use.
    let managed = unsafe { Managed::from_raw(tensor) }.unwrap();
    assert_eq!(managed.view().to_vec::<u8>().unwrap(), [1, 2]);
    drop(managed);
    assert_eq!(foreign.deleted.times(), 0);
    // SAFETY: `versioned` returned the pointer, and this is its last use.
    unsafe { made::free_versioned(tensor) };

    // A refused tensor without a deleter is not released either.
    let foreign = Foreign {
        ndim: Some(-1),
        ..foreign
    };
    let tensor = foreign.versioned();
    // SAFETY: the struct is valid, and is refused for its rank before the lists are read.
    unsafe { Managed::from_raw(tensor) }.unwrap_err();
    // SAFETY: `versioned` returned the pointer, and this is its last use.
    unsafe { made::free_versioned(tensor) };
}

/// CAP-08, LAY-02: a re-export has a deleter and strides, even if the first producer omitted them; faults 5, 54.
#[test]
fn a_reexport_adds_deleter_and_strides() {
    let (_memory, data) = memory(&[1_i32, 2, 3, 4, 5, 6]);
    let no_strides = Foreign {
        strides: None,
        ..Foreign::new(data, I32, &[2, 3])
    };
    let raw = import(&no_strides).unwrap().into_raw();
    // SAFETY: the struct is valid until its deleter is called.
    let tensor = unsafe { raw.as_ref() };
    assert!(!tensor.dl_tensor.strides.is_null());
    assert_eq!(tensor.dl_tensor.data.cast(), data, "shared, not copied");
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    let back = unsafe { Managed::from_raw(raw) }.unwrap();
    assert_eq!(back.view().strides(), [3, 1]);
    drop(back);
    assert_eq!(no_strides.deleted.times(), 1);

    let legacy = import_legacy(&no_strides).unwrap().into_legacy().unwrap();
    // SAFETY: the struct is valid until its deleter is called.
    let tensor = unsafe { legacy.as_ref() };
    assert!(!tensor.dl_tensor.strides.is_null());
    assert_eq!(tensor.dl_tensor.data.cast(), data, "shared, not copied");
    // SAFETY: `into_legacy` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_legacy(legacy) }.unwrap());
    assert_eq!(no_strides.deleted.times(), 2);

    let no_deleter = Foreign {
        has_deleter: false,
        ..Foreign::new(data, I32, &[2, 3])
    };
    let theirs = no_deleter.versioned();
    // SAFETY: a valid tensor over memory that outlives it; its struct is freed below, after its last use.
    let raw = unsafe { Managed::from_raw(theirs) }.unwrap().into_raw();
    // SAFETY: the struct is valid until its deleter is called.
    assert!(unsafe { raw.as_ref() }.deleter.is_some());
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_raw(raw) }.unwrap());
    // SAFETY: `versioned` returned the pointer, and this is its last use.
    unsafe { made::free_versioned(theirs) };

    // A tensor with deleter and strides is re-exported without a new struct.
    let theirs = Foreign::new(data, I32, &[2, 3]).versioned();
    // SAFETY: a valid tensor over memory that outlives it.
    let raw = unsafe { Managed::from_raw(theirs) }.unwrap().into_raw();
    assert_eq!(raw, theirs);
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_raw(raw) }.unwrap());
}

/// LAY-16, FLG-02, NEG-07: another producer may leave overlapping items writable. An export of its tensor does not: it is read-only,
/// or a copy if the consumer cannot be told so.
#[test]
fn a_reexport_of_overlapping_items_is_read_only() {
    let (_memory, data) = memory(&[1_i32, 2, 3]);
    let layouts: [(&[i64], bool); 4] = [
        (&[2, 1], false),
        (&[1, 1], true),
        (&[0, 1], true),
        (&[1, 2], false),
    ];
    for (strides, overlaps) in layouts {
        let shape = if overlaps { [2, 2] } else { [2, 1] };
        let foreign = Foreign::new(data, I32, &shape).strides(strides);
        let tensor = || import(&foreign).unwrap();
        let (versioned, legacy) = (ExportRequest::versioned(), ExportRequest::default());
        assert!(!tensor().view().is_read_only());
        assert_eq!(tensor().describe_mut().unwrap().is_read_only(), overlaps);
        for request in [versioned, legacy] {
            let export = tensor().into_dlpack_with(&request).unwrap();
            let view = export.view();
            let is_legacy = view.version().is_none();
            assert_eq!(view.is_read_only(), is_legacy || overlaps, "{strides:?}");
            assert_eq!(view.as_ptr() != data.cast_const(), is_legacy && overlaps);
        }
        let shared = Arc::new(tensor().shared());
        assert_eq!(shared.to_dlpack().unwrap().view().is_read_only(), overlaps);
        let part = tensor().permute(&[1, 0]).unwrap();
        assert_eq!(part.view().is_read_only(), overlaps);
    }
    // So is every part, even if it has each item once.
    let foreign = Foreign::new(data, I32, &[2, 2]).strides(&[0, 1]);
    let row = import(&foreign).unwrap().index(0, 1).unwrap();
    assert!(
        row.view().is_read_only(),
        "as the tensor that it is a part of"
    );
}

/// LAY-05, LAY-18: an export of an import without elements has no address, no offset, and row-major strides.
#[test]
fn a_reexport_without_elements_has_no_address() {
    let (_memory, data) = memory(&[1_i32]);
    let foreign = Foreign {
        byte_offset: 4,
        ..Foreign::new(data, I32, &[3, 0, 2]).strides(&[7, -1, 9])
    };
    let legacy = import_legacy(&foreign).unwrap().into_dlpack().unwrap();
    let shared = Arc::new(import(&foreign).unwrap()).to_dlpack().unwrap();
    for export in [legacy, shared] {
        assert!(export.view().as_ptr().is_null());
        assert_eq!(export.view().strides(), [2, 2, 1]);
        let raw = export.into_raw();
        // SAFETY: the struct is valid until its deleter is called.
        assert_eq!(unsafe { raw.as_ref() }.dl_tensor.byte_offset, 0);
        // SAFETY: `into_raw` returned the pointer, and this is its last use.
        drop(unsafe { Managed::from_raw(raw) }.unwrap());
    }
    assert_eq!(foreign.deleted.times(), 2);
}

/// LAY-04: null strides mean row-major, in a legacy tensor, in one of 1.0 or 1.1, and, to be lenient, in a newer one; faults 54.
#[test]
fn null_strides_are_row_major() {
    let (_memory, data) = memory(&[0_i32, 1, 2, 3, 4, 5]);
    for minor in [0, 1, 2, 3] {
        for (shape, strides) in [
            (&[2_i64, 3][..], &[3_i64, 1][..]),
            (&[6], &[1]),
            (&[1, 1, 6], &[6, 6, 1]),
            (&[0, 3], &[3, 1]),
            (&[3, 0], &[1, 1]),
        ] {
            let foreign = Foreign {
                strides: None,
                version: (1, minor),
                ..Foreign::new(data, I32, shape)
            };
            accepted(&foreign, |managed| {
                let view = managed.view();
                assert_eq!(view.strides(), strides);
                assert!(view.is_contiguous());
                let items = shape.iter().product::<i64>();
                let values: Vec<i64> = view.iter::<i32>().unwrap().map(i64::from).collect();
                assert!(values.into_iter().eq(0..items));
            });
        }
    }
}

/// LAY-03, LAY-19, LAY-20, LAY-21: the rank is 0 to 64, the shape is null only without axes, and no size is negative; faults 5,
/// 55, 69, 70.
#[test]
fn ranks_and_shapes() {
    let (_memory, data) = memory(&[7_i32; 4]);
    let valid = Foreign::new(data, I32, &[2, 2]);
    for ndim in [-1, -2, i32::MIN] {
        let foreign = Foreign {
            ndim: Some(ndim),
            ..valid.clone()
        };
        assert_eq!(malformed(&foreign), "ndim is negative");
    }
    for ndim in [65, 1000, i32::MAX] {
        // The lists are much shorter than that, so they must not be read.
        let foreign = Foreign {
            ndim: Some(ndim),
            ..valid.clone()
        };
        let found = usize::try_from(ndim).unwrap();
        assert_eq!(refused(&foreign), Error::TooManyAxes { found, most: 64 });
    }
    for strides in [None, Some(vec![1, 1])] {
        let foreign = Foreign {
            ndim: Some(2),
            shape: None,
            strides,
            ..valid.clone()
        };
        assert_eq!(malformed(&foreign), "shape is null although ndim is not 0");
    }
    for shape in [[-1, 2], [2, -1], [i64::MIN, 0], [0, -1]] {
        let foreign = Foreign {
            shape: Some(shape.to_vec()),
            ..valid.clone()
        };
        let axis = shape.iter().position(|&extent| extent < 0).unwrap();
        let found = i128::from(shape[axis]);
        assert_eq!(refused(&foreign), Error::BadExtent { axis, found });
    }
    let deep = Foreign::new(data, I32, &[1; 64]);
    accepted(&deep, |managed| {
        assert_eq!(managed.view().to_vec::<i32>().unwrap(), [7])
    });
    let scalar = Foreign {
        shape: None,
        strides: None,
        ..Foreign::new(data, I32, &[])
    };
    accepted(&scalar, |managed| {
        let view = managed.view();
        assert_eq!((view.shape(), view.strides()), (&[][..], &[][..]));
        assert_eq!(view.to_vec::<i32>().unwrap(), [7]);
        assert_eq!(view.as_slice::<i32>().unwrap(), [7]);
    });
}

/// Own faults 11: a misaligned struct is not read, not even its deleter.
#[test]
fn misaligned_structs_are_not_read() {
    let memory = [0x5A_u64; 16];
    for offset in 1..8 {
        let place = memory.as_ptr().cast_mut().wrapping_byte_add(offset);
        let place = NonNull::new(place).unwrap();
        let needed = Error::Malformed {
            what: "the address of the struct is no multiple of 8",
            found: i128::try_from(place.as_ptr().addr()).unwrap(),
        };
        // SAFETY: a misaligned struct is not read.
        let error = unsafe { Managed::from_raw(place.cast()) }.unwrap_err();
        assert_eq!(error, needed);
        // SAFETY: a misaligned struct is not read.
        let error = unsafe { Managed::from_legacy(place.cast()) }.unwrap_err();
        assert_eq!(error, needed);
    }
}

/// LAY-21: shape and strides must be aligned to be read.
#[test]
fn misaligned_lists_are_not_read() {
    let (_memory, data) = memory(&[7_i32; 4]);
    for (which, shape) in [(0, &[2, 2][..]), (1, &[2, 2]), (0, &[1; 64]), (1, &[1; 64])] {
        let foreign = Foreign::new(data, I32, shape);
        let tensor = foreign.versioned();
        // SAFETY: no other code uses the struct until it is imported.
        let inside = unsafe { &mut (*tensor.as_ptr()).dl_tensor };
        let list = if which == 0 {
            &mut inside.shape
        } else {
            &mut inside.strides
        };
        *list = list.wrapping_byte_add(4);
        // SAFETY: the struct is valid, and misaligned lists are not read.
        let error = unsafe { Managed::from_raw(tensor) }.unwrap_err();
        let address = "the address of shape or strides is no multiple of 8";
        assert!(
            matches!(error, Error::Malformed { what, .. } if what == address),
            "{error:?}"
        );
        assert_eq!(foreign.deleted.times(), 1);
    }
}

/// DTY-06, DTY-07, DTY-08, FLG-07: type codes, widths and lanes that DLPack 1.3 does not have; faults 73, 74.
#[test]
fn unknown_data_types() {
    let (_memory, data) = memory(&[0_u64; 64]);
    for (code, bits, lanes) in [
        (0, 0, 1),
        (0, 4, 1),
        (0, 7, 1),
        (0, 24, 1),
        (1, 1, 1),
        (2, 8, 1),
        (2, 80, 1),
        (2, 32, 0),
        (3, 32, 1),
        (4, 32, 1),
        (5, 8, 1),
        (6, 1, 1),
        (6, 16, 1),
        (8, 4, 1),
        (14, 16, 1),
        (15, 8, 1),
        (16, 4, 1),
        (17, 8, 1),
        (18, 32, 1),
        (255, 255, u16::MAX),
    ] {
        let foreign = Foreign::new(data, dtype(code, bits, lanes), &[2]);
        let found = DataType::new(code, bits, lanes);
        assert_eq!(refused(&foreign), Error::UnknownDataType { found });
    }
    for (code, bits, lanes) in [
        (2, 32, 4),
        (6, 8, 1),
        (5, 32, 1),
        (15, 6, 1),
        (17, 4, 2),
        (3, 64, 1),
        (1, 8, 200),
    ] {
        let foreign = Foreign::new(data, dtype(code, bits, lanes), &[2]);
        accepted(&foreign, |managed| {
            assert_eq!(managed.view().dtype(), DataType::new(code, bits, lanes));
        });
    }
    // The padding flag applies only to items of less than a byte.
    for (foreign_type, padded) in [(dtype(17, 4, 1), true), (U8, false)] {
        let foreign = Foreign {
            flags: DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
            ..Foreign::new(data, foreign_type, &[3])
        };
        let managed = import(&foreign).unwrap();
        assert_eq!(managed.view().dtype().is_padded(), padded);
        assert_eq!(managed.view().len_bytes(), 3);
    }
}

/// DEV-03, DEV-12, DEV-14, DEV-15: known devices are kept, and memory that the CPU cannot access is not read; unknown devices are
/// refused; faults 80, 82.
#[test]
fn devices() {
    let (_memory, data) = memory(&[5_u8, 6]);
    for number in [0, 5, 6, 19, 20, 21, 99, -1, i32::MIN] {
        let foreign = Foreign {
            device: DLDevice {
                device_type: number,
                device_id: 0,
            },
            ..Foreign::new(data, U8, &[2])
        };
        let found = Device::new(DeviceType(number), 0);
        assert_eq!(refused(&foreign), Error::UnknownDevice { found });
    }
    for number in (1..=18).filter(|number| ![5, 6].contains(number)) {
        let foreign = Foreign {
            device: DLDevice {
                device_type: number,
                device_id: 3,
            },
            ..Foreign::new(data, U8, &[2])
        };
        // Memory that the CPU can read is one device of its kind.
        let index = if [1, 3, 11, 13].contains(&number) {
            0
        } else {
            3
        };
        let device = Device::new(DeviceType(number), index);
        accepted(&foreign, |managed| {
            let view = managed.view();
            assert_eq!(view.device(), device);
            if [1, 3, 11, 13].contains(&number) {
                assert_eq!(view.to_vec::<u8>().unwrap(), [5, 6]);
            } else {
                let error = Error::NotOnHost { device };
                assert_eq!(view.to_vec::<u8>().unwrap_err(), error);
                assert_eq!(view.as_slice::<u8>().unwrap_err(), error);
                assert_eq!(view.iter::<u8>().map(drop).unwrap_err(), error);
            }
        });
    }
}

/// LAY-09, LAY-22: a handle can have any value, since no offset is added to it. Items lie neither before the start of its memory nor
/// beyond what any memory has.
#[test]
fn handles_are_no_addresses() {
    for (number, handle) in [
        (4, usize::MAX),
        (7, usize::MAX - 8),
        (8, 1 << (usize::BITS - 1)),
        (15, 0),
    ] {
        let foreign = |byte_offset, strides: &[i64]| Foreign {
            device: DLDevice {
                device_type: number,
                device_id: 0,
            },
            byte_offset,
            ..Foreign::new(without_provenance_mut(handle), I32, &[3]).strides(strides)
        };
        for (byte_offset, stride) in [(0, 1), (1 << 20, 1), (8, -1)] {
            accepted(&foreign(byte_offset, &[stride]), |managed| {
                let view = managed.view();
                assert_eq!(view.as_ptr().addr(), handle);
                assert_eq!(view.byte_offset(), byte_offset);
            });
        }
        for (byte_offset, stride) in [(0, -1), (7, -1), (0, i64::MAX / 4), (u64::MAX, 1)] {
            malformed(&foreign(byte_offset, &[stride]));
        }
    }
}

/// LAY-05, LAY-06: a null address is accepted only without elements; faults 6, 7, 56.
#[test]
fn null_data() {
    for shape in [&[0_i64][..], &[0, 3], &[3, 0], &[2, 0, i64::MAX]] {
        accepted(&Foreign::new(null_mut(), I32, shape), |managed| {
            let view = managed.view();
            assert!(view.is_contiguous());
            assert_eq!(view.to_vec::<i32>().unwrap(), [0; 0]);
            assert_eq!(view.as_slice::<i32>().unwrap(), [0; 0]);
            assert_eq!(view.iter::<i32>().unwrap().count(), 0);
        });
    }
    // A dangling address of an empty tensor is not used, whatever the strides and the offset.
    let nowhere = Foreign {
        byte_offset: u64::MAX,
        ..Foreign::new(core::ptr::dangling_mut(), I32, &[0, 3]).strides(&[i64::MIN, i64::MAX])
    };
    accepted(&nowhere, |managed| {
        assert_eq!(managed.view().to_vec::<i32>().unwrap(), [0; 0]);
        assert_eq!(managed.view().as_slice::<i32>().unwrap(), [0; 0]);
    });
    for shape in [&[][..], &[1], &[2, 3]] {
        let what = malformed(&Foreign::new(null_mut(), I32, shape));
        assert_eq!(what, "data is null although there are elements");
    }
}

/// LAY-07: the only number of a tensor is read at any address, whatever its size.
#[test]
fn only_numbers_at_any_address() {
    let bytes: [u8; 64] = core::array::from_fn(|index| 150 + u8::try_from(index).unwrap());
    let (_memory, data) = memory(&bytes);
    for bits in [8, 16, 32, 64, 128] {
        let size = usize::from(bits / 8);
        for (offset, window) in (0..).zip(bytes.windows(size)) {
            let foreign = Foreign {
                byte_offset: offset,
                ..Foreign::new(data, dtype(1, bits, 1), &[1, 1]).strides(&[i64::MAX, 0])
            };
            let mut expected = [0; 16];
            expected[..size].copy_from_slice(window);
            let expected = AnyNumber::Unsigned(u128::from_le_bytes(expected));
            accepted(&foreign, |managed| {
                let found = only_number(&managed.view()).unwrap();
                assert_eq!(found, Some(expected), "{size} bytes at {offset}");
            });
        }
    }
}

/// LAY-07: the first element is at the byte offset; an offset that leads out of the address space is refused; faults 58, 59, 66.
#[test]
fn byte_offsets() {
    let (_memory, data) = memory(&[0_i32, 1, 2, 3, 4]);
    for (offset, expected) in [(0, [0, 1]), (4, [1, 2]), (12, [3, 4])] {
        let foreign = Foreign {
            byte_offset: offset,
            ..Foreign::new(data, I32, &[2])
        };
        accepted(&foreign, |managed| {
            let view = managed.view();
            assert_eq!(view.to_vec::<i32>().unwrap(), expected);
            assert_eq!(view.as_slice::<i32>().unwrap(), expected);
            assert!(view.iter::<i32>().unwrap().eq(expected));
            assert_eq!(view.byte_offset(), 0);
        });
        let copy = ExportRequest {
            copy: Some(true),
            ..ExportRequest::versioned()
        };
        let copied = import(&foreign).unwrap().into_dlpack_with(&copy).unwrap();
        assert_eq!(copied.view().to_vec::<i32>().unwrap(), expected);
    }
    let address = u64::try_from(data.addr()).unwrap();
    for offset in [
        u64::MAX,
        u64::MAX - 3,
        1 << 63,
        address.wrapping_neg(),
        !address,
    ] {
        let foreign = Foreign {
            byte_offset: offset,
            ..Foreign::new(data, I32, &[2])
        };
        assert_eq!(
            malformed(&foreign),
            "byte_offset and strides lead out of memory, byte_offset"
        );
    }
    // A handle is not an address: nothing is added to it.
    let metal = Foreign {
        byte_offset: 8,
        device: DLDevice {
            device_type: DeviceType::METAL.0,
            device_id: 0,
        },
        ..Foreign::new(data, I32, &[2])
    };
    accepted(&metal, |managed| {
        assert_eq!(managed.view().byte_offset(), 8);
        assert_eq!(managed.view().as_ptr(), data.cast_const());
    });
}

/// LAY-19, LAY-22: products and ranges that overflow are refused, not truncated; faults 63, 64, 67.
#[test]
fn extents_and_strides_that_overflow() {
    const BIG: i64 = 1 << 32;
    let (_memory, data) = memory(&[0_u8; 16]);
    for (shape, strides) in [
        (&[BIG, BIG, 16, 4][..], None),
        (&[BIG, BIG, 16, 4], Some(&[0_i64, 0, 0, 0][..])),
        (&[i64::MAX, 2], Some(&[0, 0])),
        (&[i64::MAX, i64::MAX], None),
        (&[1 << 61], Some(&[0])),
    ] {
        let foreign = Foreign {
            strides: strides.map(<[i64]>::to_vec),
            ..Foreign::new(data, I32, shape)
        };
        let shape = shape.to_vec();
        assert_eq!(refused(&foreign), Error::TooLarge { shape });
    }
    for (shape, strides) in [
        (&[2_i64][..], &[i64::MAX][..]),
        (&[2], &[i64::MIN]),
        (&[3], &[i64::MAX]),
        (&[2, 2], &[i64::MAX, i64::MAX]),
        (&[2, 2], &[i64::MIN, i64::MIN]),
        (&[2, 2], &[i64::MIN, i64::MAX]),
        (&[2], &[1 << 61]),
        (&[2], &[-(1 << 61)]),
        (&[1 << 40, 1 << 20], &[1 << 40, 1]),
    ] {
        let what = malformed(&Foreign::new(data, I32, shape).strides(strides));
        assert!(
            what.starts_with("byte_offset and strides lead out"),
            "{strides:?}: {what}"
        );
    }
    // Below a small address there is little space for negative strides.
    for (address, offset, strides) in [(16, 0, -5), (16, 4, -6), (8, 0, i64::MIN >> 4)] {
        let low = Foreign {
            byte_offset: offset,
            ..Foreign::new(without_provenance_mut(address), I32, &[2]).strides(&[strides])
        };
        let what = malformed(&low);
        assert!(what.starts_with("byte_offset and strides lead out"));
    }
    let low = Foreign::new(without_provenance_mut(16), I32, &[5]).strides(&[-1]);
    accepted(&low, |managed| assert_eq!(managed.view().strides(), [-1]));
    // Strides of axes of size 1 may be anything.
    let (_one, data) = memory(&[42_i32]);
    for strides in [[i64::MAX, i64::MIN], [i64::MIN, i64::MAX], [0, -1]] {
        accepted(
            &Foreign::new(data, I32, &[1, 1]).strides(&strides),
            |managed| {
                assert_eq!(managed.view().to_vec::<i32>().unwrap(), [42]);
                assert_eq!(managed.view().as_slice::<i32>().unwrap(), [42]);
            },
        );
    }
}

/// LAY-11, LAY-12: no alignment is assumed: values are read at any address, only a slice needs the alignment of its type; faults
/// 86, 87.
#[test]
fn misaligned_data() {
    let mut bytes = [0_u8; 64];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::try_from(at).unwrap();
    }
    let start = bytes.as_mut_ptr();
    let gap = start.align_offset(16);
    for shift in 0..16 {
        let data = start.wrapping_add(gap + shift);
        let first = u8::try_from(gap + shift).unwrap();
        let expected = [first, first + 4].map(|n| i32::from_ne_bytes([n, n + 1, n + 2, n + 3]));
        accepted(&Foreign::new(data, I32, &[2]), |managed| {
            let view = managed.view();
            assert_eq!(view.to_vec::<i32>().unwrap(), expected);
            assert!(view.iter::<i32>().unwrap().eq(expected));
            match view.as_slice::<i32>() {
                Ok(slice) => assert!(shift % 4 == 0 && slice == expected),
                Err(error) => {
                    assert!(shift % 4 != 0);
                    assert!(
                        matches!(error, Error::Misaligned { alignment: 4, .. }),
                        "{error:?}"
                    );
                }
            }
        });
    }
}

/// DTY-02: a byte other than 0 and 1 is not read as a `bool`, at any position; faults 71.
#[test]
fn bytes_that_are_no_bool() {
    let (_memory, data) = memory(&[0_u8, 1, 2, 1, 255]);
    accepted(&Foreign::new(data, BOOL, &[2]), |managed| {
        assert_eq!(managed.view().to_vec::<bool>().unwrap(), [false, true]);
        assert_eq!(managed.view().as_slice::<bool>().unwrap(), [false, true]);
    });
    for (shape, strides, found) in [
        (&[3][..], &[1][..], 2),
        (&[2], &[4], 255),
        (&[2, 2], &[1, 1], 2),
    ] {
        accepted(
            &Foreign::new(data, BOOL, shape).strides(strides),
            |managed| {
                let view = managed.view();
                assert_eq!(view.to_vec::<bool>().unwrap_err(), Error::NotBool { found });
                assert_eq!(
                    view.iter::<bool>().map(drop).unwrap_err(),
                    Error::NotBool { found }
                );
                assert!(view.as_slice::<bool>().is_err());
            },
        );
    }
    // Bytes between the items may have any value.
    accepted(&Foreign::new(data, BOOL, &[2]).strides(&[3]), |managed| {
        assert_eq!(managed.view().to_vec::<bool>().unwrap(), [false, true]);
    });
}

/// FLG-03, FLG-09, NEG-20: read-only data, and all data of a legacy tensor, is not written; faults 29, 75.
#[test]
fn read_only_data_is_not_written() {
    let (_memory, data) = memory(&[1_i32, 2]);
    let foreign = Foreign::new(data, I32, &[2]);
    let read_only = Foreign {
        flags: DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED,
        ..foreign.clone()
    };
    for (mut managed, writable) in [
        (import(&foreign).unwrap(), true),
        (import(&read_only).unwrap(), false),
        (import_legacy(&foreign).unwrap(), false),
    ] {
        assert_eq!(managed.view().is_read_only(), !writable);
        assert_eq!(managed.describe_mut().unwrap().is_read_only(), !writable);
        let slice = managed.as_mut_slice::<i32>();
        assert_eq!(
            slice.map(drop),
            if writable {
                Ok(())
            } else {
                Err(Error::ReadOnly)
            }
        );
        // A shared export of it is read-only, too.
        let again = Arc::new(managed).to_dlpack().unwrap();
        assert!(again.view().is_read_only());
    }
    assert_eq!(foreign.deleted.times(), 3);
}

/// NEG-16, NEG-20, LAY-02: a legacy tensor is re-exported in a struct of 1.3 with the flag read-only, which the legacy struct
/// cannot express.
#[test]
fn a_legacy_tensor_is_wrapped() {
    let (_memory, data) = memory(&[1_i32, 2, 3, 4]);
    let foreign = Foreign::new(data, I32, &[2, 2]).strides(&[1, 2]);
    let raw = import_legacy(&foreign).unwrap().into_raw();
    // SAFETY: the struct is valid until its deleter is called.
    let tensor = unsafe { raw.as_ref() };
    assert_eq!(Version::from(tensor.version), Version::CURRENT);
    assert_eq!(tensor.flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    assert_eq!(tensor.dl_tensor.data.cast(), data);
    assert_eq!(foreign.deleted.times(), 0);
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    let managed = unsafe { Managed::from_raw(raw) }.unwrap();
    assert_eq!(managed.view().to_vec::<i32>().unwrap(), [1, 3, 2, 4]);
    drop(managed);
    assert_eq!(foreign.deleted.times(), 1);
}

/// CAP-06, CAP-20, CAP-18: after up to five re-exports, the last one to be dropped releases the first producer, once; faults 1,
/// 2, 15.
#[test]
fn the_last_of_five_reexports_releases_the_producer() {
    let (_memory, data) = memory(&[1_i32, 2, 3]);
    for depth in 0..=5 {
        for legacy in [false, true] {
            let foreign = Foreign::new(data, I32, &[3]);
            let mut tensor = if legacy {
                import_legacy(&foreign).unwrap()
            } else {
                import(&foreign).unwrap()
            };
            for step in 0..depth {
                let others = Arc::new(tensor);
                tensor = if step % 2 == 0 {
                    others.to_dlpack().unwrap()
                } else {
                    let raw = others.to_dlpack().unwrap().into_raw();
                    // SAFETY: `into_raw` just returned the pointer, and this is its only use.
                    unsafe { Managed::from_raw(raw) }.unwrap()
                };
                assert_eq!(foreign.deleted.times(), 0);
            }
            assert_eq!(tensor.view().as_slice::<i32>().unwrap(), [1, 2, 3]);
            assert_eq!(tensor.view().as_ptr(), data.cast_const(), "never copied");
            drop(tensor);
            assert_eq!(foreign.deleted.times(), 1);
        }
    }
}

/// The deleter of a tensor whose context is a box with another tensor.
unsafe extern "C" fn delete_link(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: `chain` boxed the struct, and this is its only release.
    let tensor = unsafe { Box::from_raw(tensor) };
    // SAFETY: `chain` boxed the context, and this is its only release.
    drop(unsafe { Box::from_raw(tensor.manager_ctx.cast::<Option<Managed>>()) });
}

/// CAP-06: a chain of tensors of another producer, each of which keeps the one before, is released completely. Nested calls of all
/// deleters would exceed the stack.
#[test]
fn a_long_chain_of_tensors_is_released() {
    let links = if cfg!(miri) { 100 } else { 100_000 };
    let (_memory, data) = memory(&[1_i32, 2, 3]);
    let first = Foreign::new(data, I32, &[3]);
    let mut shape = [3];
    let mut last = import(&first).unwrap();
    for _ in 0..links {
        let before = Box::new(Some(last));
        let link = Box::new(DLManagedTensorVersioned {
            version: Version::CURRENT.into(),
            manager_ctx: Box::into_raw(before).cast(),
            deleter: Some(delete_link),
            flags: 0,
            dl_tensor: DLTensor {
                data: data.cast(),
                device: Device::CPU.into(),
                ndim: 1,
                dtype: I32,
                shape: shape.as_mut_ptr(),
                strides: null_mut(),
                byte_offset: 0,
            },
        });
        // SAFETY: a valid tensor over memory and a list that outlive it.
        last = unsafe { Managed::from_raw(NonNull::from(Box::leak(link))) }.unwrap();
    }
    assert_eq!(last.view().to_vec::<i32>().unwrap(), [1, 2, 3]);
    assert_eq!(first.deleted.times(), 0);
    drop(last);
    assert_eq!(first.deleted.times(), 1);
}

/// CPY-12, CPY-04, CPY-07, DEV-12: an imported tensor is exported as the request demands, and copied at most once; faults 79.
#[test]
fn an_import_is_exported_as_requested() {
    let (_memory, data) = memory(&[1_i32, 2, 3, 4, 5, 6]);
    let foreign = Foreign {
        flags: DLPACK_FLAG_BITMASK_READ_ONLY,
        ..Foreign::new(data, I32, &[3, 2]).strides(&[1, 3])
    };
    for (request, transfer) in [
        (ExportRequest::versioned(), Transfer::Share),
        (
            ExportRequest {
                copy: Some(true),
                ..ExportRequest::versioned()
            },
            Transfer::Copy,
        ),
        (ExportRequest::default(), Transfer::Copy),
    ] {
        let before = foreign.deleted.times();
        let managed = import(&foreign)
            .unwrap()
            .into_dlpack_with(&request)
            .unwrap();
        let copied = transfer == Transfer::Copy;
        let view = managed.view();
        assert_eq!(view.as_ptr() != data.cast_const(), copied);
        assert_eq!(view.to_vec::<i32>().unwrap(), [1, 4, 2, 5, 3, 6]);
        assert_eq!(view.is_copied(), copied && view.version().is_some());
        assert_eq!(
            foreign.deleted.times() - before,
            usize::from(copied),
            "a copy lets go of the original"
        );
        drop(managed);
        assert_eq!(foreign.deleted.times() - before, 1);
    }
    // A tensor that is flagged as a copy keeps the flag.
    let copied = Foreign {
        flags: DLPACK_FLAG_BITMASK_IS_COPIED,
        ..foreign
    };
    let managed = import(&copied)
        .unwrap()
        .into_dlpack_with(&ExportRequest::versioned())
        .unwrap();
    assert!(managed.view().is_copied() && managed.view().as_ptr() == data.cast_const());
}

/// A producer whose only export is an imported tensor.
struct Relay(Mutex<Option<Managed>>);

impl DLPack for Relay {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new().via(self.0.lock().unwrap().take().unwrap())
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.describe()
    }
}

/// NEG-02, NEG-07, NEG-08, LAY-08: an import that a producer hands out as its own tensor gets the requested struct, with the
/// version and the zero offset of this crate.
#[test]
fn an_import_that_is_made_on_request_is_exported_as_requested() {
    let (_memory, data) = memory(&[0_i32, 1, 2, 3]);
    for (minor, byte_offset) in [(0, 0), (1, 8), (3, 8), (4, 0)] {
        let foreign = Foreign {
            version: (1, minor),
            byte_offset,
            ..Foreign::new(data, I32, &[2])
        };
        let first = i32::try_from(byte_offset).unwrap() / 4;
        let relay = || Relay(Mutex::new(Some(import(&foreign).unwrap())));
        for (request, version) in [
            (ExportRequest::versioned(), Some(Version::CURRENT)),
            (ExportRequest::default(), None),
        ] {
            let shared = Arc::new(relay()).to_dlpack_with(&request).unwrap();
            for export in [shared, relay().into_dlpack_with(&request).unwrap()] {
                let view = export.view();
                assert_eq!(view.version(), version);
                assert!(!view.is_copied(), "the other producer may have kept it");
                assert_eq!(view.is_read_only(), version.is_none());
                assert_eq!(view.as_slice::<i32>().unwrap(), [first, first + 1]);
                let tensor = if version.is_some() {
                    let raw = export.into_raw();
                    // SAFETY: `into_raw` returned the pointer, and both uses of it are here.
                    let tensor = unsafe { raw.as_ref() }.dl_tensor;
                    // SAFETY: as above.
                    drop(unsafe { Managed::from_raw(raw) }.unwrap());
                    tensor
                } else {
                    let raw = export.into_legacy().unwrap();
                    // SAFETY: `into_legacy` returned the pointer, and both uses of it are here.
                    let tensor = unsafe { raw.as_ref() }.dl_tensor;
                    // SAFETY: as above.
                    drop(unsafe { Managed::from_legacy(raw) }.unwrap());
                    tensor
                };
                assert_eq!(tensor.byte_offset, 0);
                let start = data.wrapping_add(usize::try_from(byte_offset).unwrap());
                assert_eq!(tensor.data.cast(), start, "shared, not copied");
            }
        }
        assert_eq!(foreign.deleted.times(), 4, "each is released once");
    }
}

/// CAP-20: an import is known to have the only reference only if its block is a copy made by this crate for one consumer. A flag
/// is no proof.
#[test]
fn only_copies_of_this_crate_are_known_to_be_unshared() {
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    // SAFETY: `into_raw` just returned each pointer, and this is its only use.
    let back = |tensor: Managed| unsafe { Managed::from_raw(tensor.into_raw()) }.unwrap();
    let made = || vec![1_i32, 2, 3].into_dlpack_with(&copy).unwrap();
    assert!(is_own_copy(&back(made())));
    assert!(is_own_copy(&back(made().slice(0, 1..2).unwrap())));
    assert!(is_own_copy(&back(back(made()))));
    // Other code may have got the address of a tensor that was marked shared.
    for shared in [made().shared(), back(made()).shared()] {
        assert!(shared.view().is_copied() && !is_own_copy(&shared));
        let again = back(shared);
        assert!(!again.view().is_copied() && !is_own_copy(&again));
    }
    // Other code has, or may have, a reference to the memory: of a re-export, a plain export, zeros, or the struct without flags.
    let reexport = back(made()).reshape(&[3, 1]).unwrap();
    let zeros = Managed::zeroed(&[3], DataType::I32).unwrap();
    for tensor in [reexport, vec![1_i32].into_dlpack().unwrap(), zeros] {
        assert!(!is_own_copy(&back(tensor)));
    }
    // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
    let legacy = unsafe { Managed::from_legacy(made().into_legacy().unwrap()) };
    assert!(!is_own_copy(&legacy.unwrap()));
    // The flag of another producer.
    let (memory, data) = memory(&[1_i32, 2, 3]);
    let copied = Foreign {
        flags: DLPACK_FLAG_BITMASK_IS_COPIED,
        ..Foreign::new(data, I32, &[3])
    };
    let foreign = import(&copied).unwrap();
    assert!(foreign.view().is_copied() && !is_own_copy(&foreign));
    drop((foreign, memory));
}

/// CAP-13: a foreign tensor is released by the thread that drops it, whichever it is; faults 31, 32.
#[test]
fn released_on_another_thread() {
    let (memory, data) = memory(&[1_i32, 2, 3]);
    let foreign = Foreign::new(data, I32, &[3]);
    let managed = import(&foreign).unwrap();
    let sum: i32 = std::thread::spawn(move || managed.view().iter::<i32>().unwrap().sum())
        .join()
        .unwrap();
    assert_eq!((sum, foreign.deleted.times()), (6, 1));
    drop(memory);
}
