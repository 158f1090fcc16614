//! Hostile structs: whatever is accepted can be looked at, its items can be read where its producer did
//! not lie about its memory, and the deleter runs once in any case.
#![no_main]

use dlpack_core::Managed;
use dlpack_core::abi::DLDevice;
use dlpack_fuzz::Bytes;
use dlpack_fuzz::forgery::{Forgery, Verdict, look};
use dlpack_fuzz::made::{Foreign, dtype};
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
    let forgery = Forgery { foreign, legacy };
    // SAFETY: the struct keeps what `from_raw` asks for; items are only read where they exist.
    let imported = unsafe { forgery.make().import() };
    match (forgery.verdict(), imported) {
        (Verdict::Refused(why), Ok(_)) => panic!("taken in spite of {why}"),
        (Verdict::Taken, Err(error)) => panic!("refused by {error}"),
        (_, Err(error)) => {
            let _message = error.to_string();
        }
        (_, Ok(managed)) => {
            assert_eq!(deleted.times(), 0);
            let view = managed.view();
            let _debug = format!("{managed:?} {} {}", view.len_bytes(), view.is_contiguous());
            look(&managed, &memory);
            let again = managed.into_raw();
            // SAFETY: given up right here.
            let again = unsafe { Managed::from_raw(again) }.expect("it was good before");
            assert_eq!(deleted.times(), 0);
            drop(again);
        }
    }
    assert_eq!(deleted.times(), 1);
});
