//! A copy of any strided tensor has the bytes that a walk over its indices finds.
#![no_main]

use dlpack_core::{DLPack, ExportRequest, Managed};
use dlpack_fuzz::made::{Foreign, dtype};
use dlpack_fuzz::{Bytes, places};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let itemsize = usize::from(bytes.byte() % 40) + 1;
    let shape: Vec<i64> = (0..bytes.byte() % 8)
        .map(|_| {
            i64::from(match bytes.byte() {
                wide @ 200.. => wide,
                byte => byte % 9,
            })
        })
        .collect();
    let strides: Vec<i64> = shape
        .iter()
        .map(|_| i64::from(bytes.byte().cast_signed()))
        .collect();
    let Some(places) = places(&shape, &strides, -20_000, 20_000, 30_000) else {
        return;
    };
    let low = places.iter().copied().min().unwrap_or(0);
    let high = places.iter().copied().max().unwrap_or(-1) + 1;
    // Exactly what is reached, so that the sanitizer sees a byte too far on either side.
    let len = usize::try_from(high - low).expect("not negative") * itemsize;
    let mut seed = bytes.byte();
    let mut memory: Vec<u8> = (0..len)
        .map(|_| {
            seed = seed.wrapping_mul(5).wrapping_add(113);
            seed
        })
        .collect();
    let at = |place: i64| usize::try_from(place - low).expect("not before the first") * itemsize;
    let expected: Vec<u8> = places
        .iter()
        .flat_map(|&place| memory[at(place)..at(place) + itemsize].iter().copied())
        .collect();

    let lanes = u16::try_from(itemsize).expect("small");
    let first = if places.is_empty() { 0 } else { at(0) };
    let foreign = Foreign::new(
        memory.as_mut_ptr().wrapping_add(first),
        dtype(1, 8, lanes),
        &shape,
    )
    .strides(&strides);
    let deleted = foreign.deleted.clone();
    // SAFETY: every item lies in `memory`, which outlives the tensor and is not written.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }.expect("a good tensor");
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copy = managed
        .into_dlpack_with(&request)
        .expect("it can be copied");
    assert_eq!(deleted.times(), 1, "the original is released");
    let view = copy.view();
    assert!(view.is_contiguous() && view.is_copied() && !view.is_read_only());
    assert_eq!(view.len_bytes(), expected.len());
    if !expected.is_empty() {
        // SAFETY: a contiguous tensor of so many bytes.
        let found = unsafe { core::slice::from_raw_parts(view.as_ptr(), view.len_bytes()) };
        assert!(found == expected, "{shape:?} {strides:?} {itemsize}");
    }
});
