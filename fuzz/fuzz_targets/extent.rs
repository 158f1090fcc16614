//! Any annotation over a buffer: the crate accepts it exactly where the model finds nothing against it.
#![no_main]

use dlpack_core::Loan;
use dlpack_fuzz::Bytes;
use dlpack_fuzz::oracle::{Case, KINDS, Reason, Strides};
use libfuzzer_sys::fuzz_target;

static MEMORY: [u128; 17] = [0; 17];

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let start = MEMORY
        .as_ptr()
        .cast::<u8>()
        .wrapping_add(usize::from(bytes.byte() % 17));
    let len = usize::from(bytes.byte());
    // SAFETY: at most 16 + 255 of the 272 bytes, which no code writes.
    let memory = unsafe { core::slice::from_raw_parts(start, len) };
    let shape = bytes
        .byte()
        .is_multiple_of(8)
        .then_some(())
        .map_or_else(|| Some(bytes.numbers(70)), |()| None);
    let case = Case {
        address: start.addr(),
        len,
        kind: bytes.one_of(KINDS),
        strides: match bytes.byte() % 4 {
            0 => Strides::Packed,
            1 => Strides::ColumnMajor,
            which => {
                let rank = shape.as_ref().map_or(1, Vec::len) + usize::from(bytes.byte() == 0);
                let strides = (0..rank).map(|_| bytes.number()).collect();
                if which == 2 {
                    Strides::Elements(strides)
                } else {
                    Strides::Bytes(strides)
                }
            }
        },
        shape,
        offset: bytes.number(),
        byte_offset: bytes.number(),
    };

    match (case.verdict(), case.parts().describe(Loan::from(memory))) {
        (Ok(tensor), Ok(found)) => {
            assert!(
                tensor
                    .shape
                    .iter()
                    .copied()
                    .eq(found.shape().iter().map(|&e| i128::from(e))),
                "{case:?}"
            );
            assert!(
                tensor
                    .strides
                    .iter()
                    .copied()
                    .eq(found.strides().iter().map(|&s| i128::from(s))),
                "{case:?}"
            );
            let first = if tensor.is_empty() {
                0
            } else {
                start.addr() + tensor.first
            };
            assert_eq!(found.as_ptr().addr(), first, "{case:?}");
        }
        (Err(against), Err(error)) => {
            let reason = Reason::of(&error).filter(|reason| against.contains(reason));
            assert!(reason.is_some(), "{case:?}: {error:?}, not {against:?}");
        }
        (expected, found) => panic!("{case:?}: {found:?}, not {expected:?}"),
    }
});
