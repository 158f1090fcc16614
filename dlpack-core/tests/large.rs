//! Copies of more memory than caches hold, for which the crate uses special instructions.

#![cfg(not(miri))]
#![expect(unsafe_code, reason = "makes foreign tensors by hand")]

mod made;

use dlpack_core::array::{View, ViewMut};
use dlpack_core::{FromDLPack, Managed};
use made::{Foreign, I32};

const COUNT: i32 = (16 << 20) / 4 + 100;
const LEN: usize = COUNT as usize;
/// Value of the elements before and after the range that a copy may write.
const GUARD: i32 = -7;

/// A shared tensor of `LEN` numbers that starts at an index.
fn import(numbers: &mut [i32], first: usize) -> Managed {
    let data = numbers[first..first + LEN].as_mut_ptr().cast();
    let foreign = Foreign::new(data, I32, &[LEN as i64]);
    // SAFETY: a valid tensor over `numbers`, which each test keeps alive.
    unsafe { Managed::from_raw(foreign.versioned()) }
        .unwrap()
        .shared()
}

#[test]
fn copies_of_many_megabytes() {
    let mut source: Vec<i32> = (0..COUNT + 8).map(|x| x.wrapping_mul(77_777)).collect();
    for from in [0, 1, 4] {
        let expected = source[from..from + LEN].to_vec();
        let array = View::<i32, [i64; 1]>::from_dlpack(import(&mut source, from)).unwrap();
        assert!(array.to_vec().unwrap() == expected, "read at {from}");
        for to in [1, 4] {
            let mut memory = vec![GUARD; LEN + 8];
            let written = import(&mut memory, to);
            let mut written = ViewMut::<i32, [i64; 1]>::from_dlpack(written).unwrap();
            written.copy_from_slice(&expected).unwrap();
            assert!(written.to_vec().unwrap() == expected, "written at {to}");
            written.fill(0);
            written.copy_from(&array).unwrap();
            drop(written);
            assert!(memory[to..to + LEN] == expected, "from {from} to {to}");
            let around = memory[..to].iter().chain(&memory[to + LEN..]);
            assert!(around.copied().all(|number| number == GUARD));
        }
    }
}
