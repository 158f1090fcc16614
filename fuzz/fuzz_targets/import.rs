//! Hostile structs: whatever is accepted can be looked at, its items can be read where its producer did
//! not lie about its memory, and the deleter runs once in any case.
#![no_main]

use dlpack_core::abi::DLDevice;
use dlpack_core::{DataType, Managed};
use dlpack_core::element::Plain;
use dlpack_fuzz::made::{Foreign, dtype};
use dlpack_fuzz::{Bytes, places};
use libfuzzer_sys::fuzz_target;

const TYPES: [(u8, u8, u16); 8] = [
    (1, 8, 1),
    (0, 32, 1),
    (2, 64, 1),
    (6, 8, 1),
    (0, 16, 1),
    (17, 4, 1),
    (5, 128, 1),
    (0, 128, 1),
];

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let len = 8 * usize::from(bytes.byte() % 33);
    let mut memory: Vec<u8> = (0..len).map(|_| bytes.byte()).collect();
    let (code, bits, lanes) = if bytes.byte().is_multiple_of(16) {
        (bytes.byte(), bytes.byte(), u16::from(bytes.byte()))
    } else {
        bytes.one_of(&TYPES)
    };
    let shape = bytes.numbers(70);
    let rank = shape.len();
    let foreign = Foreign {
        data: if bytes.byte() == 1 {
            core::ptr::null_mut()
        } else {
            memory.as_mut_ptr()
        },
        device: DLDevice {
            device_type: (bytes.byte() % 8).max(1).into(),
            device_id: 0,
        },
        // The lists are as long as they say; a rank that is refused may say anything.
        ndim: match bytes.byte() {
            1 => Some(-1 - i32::from(bytes.byte())),
            2 => Some(65 + i32::from(bytes.byte())),
            _ => None,
        },
        strides: (bytes.byte() % 4 != 0).then(|| (0..rank).map(|_| bytes.number()).collect()),
        shape: (rank > 0 || bytes.byte() == 1).then_some(shape),
        byte_offset: bytes.number().cast_unsigned(),
        version: (u32::from(bytes.byte() == 1) + 1, bytes.byte().into()),
        flags: bytes.byte().into(),
        ..Foreign::new(core::ptr::null_mut(), dtype(code, bits, lanes), &[])
    };
    let deleted = foreign.deleted.clone();

    let legacy = bytes.byte().is_multiple_of(2);
    let imported = if legacy {
        // SAFETY: the struct keeps what `from_legacy` asks for; items are only read where they exist.
        unsafe { Managed::from_legacy(foreign.legacy()) }
    } else {
        // SAFETY: as above.
        unsafe { Managed::from_raw(foreign.versioned()) }
    };
    match imported {
        Err(error) => {
            let _message = error.to_string();
        }
        Ok(managed) => {
            assert_eq!(deleted.times(), 0);
            read::<u8>(&managed, &memory);
            read::<i32>(&managed, &memory);
            read::<f64>(&managed, &memory);
            read::<bool>(&managed, &memory);
            read::<i16>(&managed, &memory);
            read::<i128>(&managed, &memory);
            let again = managed.into_raw();
            // SAFETY: given up right here.
            let again = unsafe { Managed::from_raw(again) }.expect("it was good before");
            assert_eq!(deleted.times(), 0);
            drop(again);
        }
    }
    assert_eq!(deleted.times(), 1);
});

/// Compares all ways to read a tensor with the bytes at its places.
fn read<T: Plain + PartialEq + core::fmt::Debug + Copy>(managed: &Managed, memory: &[u8]) {
    let view = managed.view();
    let _debug = format!("{managed:?} {} {}", view.len_bytes(), view.is_contiguous());
    let size = size_of::<T>();
    let start = view.as_ptr().addr().wrapping_sub(memory.as_ptr().addr());
    if view.dtype() != T::DTYPE
        || view.device().device_type.0 != 1 && view.device().device_type.0 != 3
    {
        // Refused before anything is read.
        assert!(
            view.to_vec::<T>().is_err()
                && view.iter::<T>().is_err()
                && view.as_slice::<T>().is_err()
        );
        return;
    }
    let at = |place: i64| {
        let byte = i64::try_from(start)
            .ok()?
            .checked_add(place.checked_mul(i64::try_from(size).ok()?)?)?;
        memory.get(usize::try_from(byte).ok()?..)?.get(..size)
    };
    let Some(places) = places(view.shape(), view.strides(), -1024, 1024, 4096) else {
        return;
    };
    let Some(expected) = places.into_iter().map(at).collect::<Option<Vec<_>>>() else {
        return; // The producer lied.
    };
    if T::DTYPE == DataType::BOOL && expected.iter().any(|byte| byte[0] > 1) {
        assert!(
            view.to_vec::<T>().is_err()
                && view.iter::<T>().is_err()
                && view.as_slice::<T>().is_err()
        );
        return;
    }
    let bytes = |items: &[T]| -> Vec<u8> {
        // SAFETY: plain items are their bytes.
        unsafe { core::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }.to_vec()
    };
    let expected = expected.concat();
    assert_eq!(bytes(&view.to_vec::<T>().expect("readable")), expected);
    assert_eq!(
        bytes(&view.iter::<T>().expect("readable").collect::<Vec<_>>()),
        expected
    );
    if let Ok(slice) = view.as_slice::<T>() {
        assert_eq!(bytes(slice), expected);
    }
}
