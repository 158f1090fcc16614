//! `SharedBuffer`: written by several threads, through handles and through exports, in its own or adopted memory.

#![expect(
    unsafe_code,
    reason = "makes foreign tensors, and plays a consumer that writes"
)]

mod made;

use dlpack_core::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use dlpack_core::binding::{keep_by_allocation, reinterpret_bytes, share_allocation, share_root};
use dlpack_core::element::Plain;
use dlpack_core::{DLPack, Device, Error, ExportRequest, FromDLPack, Managed, SharedBuffer};
use made::{BOOL, F32, Foreign, I32, U8};
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};

/// FLG-05, CPY-05, CAP-20: four threads write and read while exports live; each value that is read is one that was written.
#[test]
fn written_from_four_threads() {
    let rounds: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let buffer = SharedBuffer::<u64>::zeroed(4).unwrap();
    let exports: Vec<Managed> = (0..4)
        .map(|_| Arc::new(buffer.clone()).to_dlpack().unwrap())
        .collect();
    // The low and the high half of each value are equal, so that a torn write is noticed.
    let whole = |value: u64| cfg!(miri) || value >> 32 == value & 0xffff_ffff;
    std::thread::scope(|scope| {
        for export in &exports {
            let buffer = buffer.clone();
            scope.spawn(move || {
                for round in 0..rounds {
                    let index = usize::try_from(round % 4).unwrap();
                    buffer.set(index, round << 32 | round);
                    assert!(whole(buffer.get((index + 1) % 4)));
                    if round % 64 == 0 {
                        assert!(export.view().iter::<u64>().unwrap().all(whole));
                        assert!(
                            export
                                .view()
                                .to_vec::<u64>()
                                .unwrap()
                                .into_iter()
                                .all(whole)
                        );
                    }
                }
            });
        }
    });
    assert!(buffer.to_vec().into_iter().all(whole));
    // Memory that other code may write is lent as no slice, and is not flagged as a copy.
    assert_eq!(
        exports[0].view().as_slice::<u64>().unwrap_err(),
        Error::MayChange
    );
    assert!(!exports[0].view().is_read_only() && !exports[0].view().is_copied());
}

/// Own faults 16: the same bytes are read and written as words of 1, 2 and 8 bytes, and each 2-byte half that is read is one that
/// was written.
#[test]
fn words_of_several_sizes() {
    #[derive(DLPack)]
    #[dlpack(elem = u16)]
    struct Halves(#[dlpack(data)] SharedBuffer<u64>);
    #[derive(DLPack)]
    #[dlpack(elem = u8)]
    struct Bytes(#[dlpack(data)] SharedBuffer<u64>);

    let buffer = SharedBuffer::<u64>::zeroed(4).unwrap();
    let halves = Arc::new(Halves(buffer.clone())).to_dlpack().unwrap();
    let halves = SharedBuffer::<u16>::from_dlpack(halves).unwrap();
    let bytes = Arc::new(Bytes(buffer.clone())).to_dlpack().unwrap();
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let (writes, reads) = if cfg!(miri) {
        (20_u64, 5)
    } else {
        (20_000, 2_000)
    };
    // Both bytes of each half are equal.
    let whole = |half: u16| cfg!(miri) || half >> 8 == half & 0xff;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..writes {
                buffer.set(1, (round & 0xff) * 0x0101_0101_0101_0101);
                halves.set(5, ((round + 1) & 0xff) as u16 * 0x0101);
            }
        });
        for _ in 0..reads {
            assert!(halves.to_vec().into_iter().all(whole));
            let copied = Arc::new(halves.clone()).to_dlpack_with(&copy).unwrap();
            assert!(copied.view().iter::<u16>().unwrap().all(whole));
            assert_eq!(bytes.view().to_vec::<u8>().unwrap()[..8], [0; 8]);
        }
    });
    assert_eq!(bytes.view().len_bytes(), 32);
}

/// Every byte of a range is copied and no other, whatever its start and length.
#[test]
fn ranges_of_every_length_and_address() {
    #[derive(DLPack)]
    #[dlpack(shape = [self.len], offset = self.start)]
    struct Window {
        #[dlpack(data)]
        bytes: SharedBuffer<u8>,
        start: usize,
        len: usize,
    }

    let bytes: Vec<u8> = (1..=120).collect();
    let step = if cfg!(miri) { 13 } else { 1 };
    let lens = || (0..100).step_by(step);
    for (start, len) in (0..9).flat_map(|start| lens().map(move |len| (start, len))) {
        let buffer = SharedBuffer::copied_from(&bytes).unwrap();
        let window = Window {
            bytes: buffer.clone(),
            start,
            len,
        };
        let export = Arc::new(window).to_dlpack().unwrap();
        let expected = &bytes[start..start + len];
        assert_eq!(export.view().to_vec::<u8>().unwrap(), expected);
        let window = SharedBuffer::<u8>::from_dlpack(export).unwrap();
        assert_eq!(window.to_vec(), expected);
        window.copy_from_slice(&vec![0; len]);
        let mut expected = bytes.clone();
        expected[start..start + len].fill(0);
        assert_eq!(buffer.to_vec(), expected);
    }
}

/// Ranges and fills affect exactly the elements that they name.
#[test]
fn ranges_and_fills() {
    fn check<T: Plain + PartialEq + core::fmt::Debug>(values: [T; 3]) {
        let [a, b, c] = values;
        for len in [0, 1, 5, if cfg!(miri) { 20 } else { 700 }] {
            let buffer = SharedBuffer::copied_from(&vec![a; len + 2]).unwrap();
            buffer.set_range(1, &vec![b; len]);
            let mut expected = vec![a; len + 2];
            expected[1..=len].fill(b);
            assert_eq!(buffer.to_vec(), expected);
            let mut part = vec![c; len + 1];
            buffer.get_range(1, &mut part);
            assert_eq!(part, expected[1..]);
            let mut all = vec![c; len + 2];
            buffer.copy_to_slice(&mut all);
            assert_eq!(all, expected);
            buffer.fill(c);
            assert_eq!(buffer.to_vec(), vec![c; len + 2]);
        }
    }
    check([1_u8, 2, 3]);
    check([1.0_f32, 2.0, 3.0]);
    check([[1_i16, 2, 3], [4, 5, 6], [7, 8, 9]]);
    check([true, false, true]);
    // More than one batch of a fill.
    if !cfg!(miri) {
        check([[1_u64; 200], [2; 200], [3; 200]]);
    }
    check([[0_u32; 0]; 3]);

    let buffer = SharedBuffer::<u16>::zeroed(3).unwrap();
    let refused = |body: &dyn Fn()| {
        let body = core::panic::AssertUnwindSafe(body);
        let payload = catch_unwind(body).unwrap_err();
        payload.downcast_ref::<String>().cloned().unwrap()
    };
    let message = "2 elements from index 2 of a buffer of 3 elements";
    assert_eq!(refused(&|| buffer.set_range(2, &[1, 2])), message);
    assert_eq!(refused(&|| buffer.get_range(2, &mut [1, 2])), message);
    let message = "index 3 of a buffer of 3 elements";
    assert_eq!(refused(&|| buffer.set(3, 1)), message);
    let message = refused(&|| buffer.get_range(usize::MAX, &mut [1, 2]));
    assert!(message.contains(&usize::MAX.to_string()), "{message}");
    assert!(refused(&|| buffer.copy_to_slice(&mut [0; 2])).contains("as many elements"));
    assert_eq!(buffer.to_vec(), [0; 3]);
    buffer.set_range(3, &[]);
}

/// CPY-01, CPY-06: a copy reads each item once and does not change afterwards.
#[test]
fn copies_do_not_change() {
    let buffer = SharedBuffer::copied_from(&[1_i16, 2, 3]).unwrap();
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let mut copied = Arc::new(buffer.clone()).to_dlpack_with(&copy).unwrap();
    let shared = Arc::new(buffer.clone()).to_dlpack().unwrap();
    buffer.set(1, 9);
    assert_eq!(copied.view().as_slice::<i16>().unwrap(), [1, 2, 3]);
    assert_eq!(shared.view().to_vec::<i16>().unwrap(), [1, 9, 3]);
    copied.as_mut_slice::<i16>().unwrap()[0] = 7;
    assert_eq!(buffer.to_vec(), [1, 9, 3]);
}

/// FLG-05: only the last handle lends a mutable slice.
#[test]
fn exclusive_access_needs_the_only_handle() {
    let mut buffer = SharedBuffer::<u8>::zeroed(3).unwrap();
    buffer.get_mut().expect("alone").copy_from_slice(&[1, 2, 3]);
    let clone = buffer.clone();
    assert!(buffer.get_mut().is_none());
    drop(clone);
    let export = Arc::new(buffer.clone()).to_dlpack().unwrap();
    assert!(buffer.get_mut().is_none(), "an export holds it");
    let raw = export.into_raw();
    assert!(buffer.get_mut().is_none(), "a consumer in C holds it");
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_raw(raw) }.unwrap());
    buffer.get_mut().expect("alone again")[0] = 9;
    assert_eq!(buffer.to_vec(), [9, 2, 3]);
    // Memory of another library may have other users.
    let import = vec![1_u8, 2].into_dlpack().unwrap().shared();
    let mut adopted = SharedBuffer::<u8>::from_dlpack(import).unwrap();
    assert!(adopted.get_mut().is_none());
}

/// CPY-14: memory that the buffer allocates is aligned for every consumer and zeroed; faults 86, 88.
#[test]
fn own_memory_is_aligned() {
    fn check<T: Plain + PartialEq + Default + core::fmt::Debug + Copy>() {
        for len in [0, 1, 3, if cfg!(miri) { 50 } else { 1000 }] {
            let buffer = SharedBuffer::<T>::zeroed(len).unwrap();
            assert_eq!(buffer.as_ptr().addr() % 256, 0);
            assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
            assert!(
                buffer
                    .to_vec()
                    .into_iter()
                    .all(|value| value == T::default())
            );
        }
    }
    check::<bool>();
    check::<u8>();
    check::<f64>();
    check::<u128>();
    check::<[i16; 3]>();
    let too_much = SharedBuffer::<u64>::zeroed(usize::MAX / 4);
    assert!(matches!(too_much.map(drop), Err(Error::OutOfMemory { .. })));
}

/// Scalars of 16 bytes, and elements of several items, are read and written completely.
#[test]
fn wide_elements() {
    let values = [u128::MAX / 3, 1, u128::MAX];
    let buffer = SharedBuffer::copied_from(&values).unwrap();
    buffer.set(1, values[0]);
    assert_eq!(buffer.to_vec(), [values[0], values[0], values[2]]);
    let export = Arc::new(buffer.clone()).to_dlpack().unwrap();
    assert_eq!(export.view().to_vec::<u128>().unwrap(), buffer.to_vec());
    assert!(export.view().iter::<u128>().unwrap().eq(buffer.to_vec()));

    let points = SharedBuffer::copied_from(&[[1.0_f64, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    points.set(0, [7.0, 8.0, 9.0]);
    assert_eq!(points.get(0), [7.0, 8.0, 9.0]);
    let export = Arc::new(points).to_dlpack().unwrap();
    assert_eq!(export.view().shape(), [2, 3]);
    assert_eq!(
        export.view().to_vec::<f64>().unwrap(),
        [7.0, 8.0, 9.0, 4.0, 5.0, 6.0]
    );
}

/// CAP-06, CPY-12, CAP-20: an imported tensor is adopted without a copy, and released with the last handle.
#[test]
fn adopts_imported_memory() {
    let mut memory = [1_i32, 2, 3];
    let data = memory.as_mut_ptr();
    let foreign = Foreign::new(data.cast(), I32, &[3]);
    // SAFETY: a valid tensor over `memory`, which is accessed only through `data` while the tensor lives.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let buffer = SharedBuffer::<i32>::from_dlpack(managed).unwrap();
    assert_eq!(buffer.as_ptr(), data);
    assert!(!buffer.is_read_only());
    buffer.set(2, -3);
    let export = Arc::new(buffer.clone()).to_dlpack().unwrap();
    drop(buffer);
    assert_eq!(foreign.deleted.times(), 0);
    // SAFETY: the write of a consumer, on this thread; no other thread accesses the memory.
    unsafe { data.write(10) };
    assert_eq!(export.view().to_vec::<i32>().unwrap(), [10, 2, -3]);
    drop(export);
    assert_eq!(foreign.deleted.times(), 1);
    assert_eq!(memory, [10, 2, -3]);
}

/// CAP-13, CAP-15: the adopted tensor is released once, by the thread that drops the last handle, after all accesses of the
/// others.
#[test]
fn the_last_of_several_threads_releases() {
    let (rounds, clones) = if cfg!(miri) { (3, 5) } else { (50, 2_000) };
    let mut memory = [1_i32, 2, 3];
    for _ in 0..rounds {
        let foreign = Foreign::new(memory.as_mut_ptr().cast(), I32, &[3]);
        // SAFETY: a valid tensor over `memory`, which is accessed only through it while it lives.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let buffer = SharedBuffer::<i32>::from_dlpack(managed).unwrap();
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (buffer, barrier, deleted) = (buffer.clone(), &barrier, &foreign.deleted);
                scope.spawn(move || {
                    barrier.wait();
                    for _ in 0..clones {
                        drop(buffer.clone());
                    }
                    assert_eq!((buffer.get(2), deleted.times()), (3, 0));
                });
            }
            drop(buffer);
        });
        assert_eq!(foreign.deleted.times(), 1);
    }
}

/// CAP-21, LAY-12: a tensor that cannot be adopted is refused and released once.
#[test]
fn tensors_that_cannot_be_adopted_are_refused() {
    let mut memory = [0_u64; 4];
    let data = memory.as_mut_ptr().cast::<u8>();
    let mut strided = Foreign::new(data, I32, &[2]).strides(&[2]);
    strided.flags = 0;
    let mut on_gpu = Foreign::new(data, I32, &[2]);
    on_gpu.device.device_type = 2;
    for foreign in [
        strided,
        on_gpu,
        Foreign::new(data, I32, &[2]).strides(&[0]),
        Foreign::new(data.wrapping_add(4), I32, &[2]).strides(&[-1]),
        Foreign::new(data.wrapping_add(1), I32, &[2]),
        Foreign::new(data, F32, &[2]),
    ] {
        // SAFETY: a valid tensor over `memory`, which outlives it.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let result = SharedBuffer::<i32>::from_dlpack(managed).map(drop);
        assert!(result.is_err(), "{foreign:?}");
        assert_eq!(foreign.deleted.times(), 1, "{result:?}");
    }
}

/// FLG-09, NEG-20: read-only memory is adopted for reading; an attempt to write it panics and changes nothing; faults 29.
#[test]
fn read_only_memory_is_not_written() {
    let mut memory = [1_i32, 2];
    let foreign = Foreign {
        flags: 1,
        ..Foreign::new(memory.as_mut_ptr().cast(), I32, &[2])
    };
    for legacy in [false, true] {
        let managed = if legacy {
            // SAFETY: a valid tensor over `memory`, which outlives it.
            unsafe { Managed::from_legacy(foreign.legacy()) }
        } else {
            // SAFETY: a valid tensor over `memory`, which outlives it.
            unsafe { Managed::from_raw(foreign.versioned()) }
        };
        let buffer = SharedBuffer::<i32>::from_dlpack(managed.unwrap()).unwrap();
        assert!(buffer.is_read_only());
        let set = core::panic::AssertUnwindSafe(|| buffer.set(0, 5));
        assert!(catch_unwind(set).is_err());
        let fill = core::panic::AssertUnwindSafe(|| buffer.copy_from_slice(&[5, 5]));
        assert!(catch_unwind(fill).is_err());
        assert_eq!(buffer.to_vec(), [1, 2]);
        let export = Arc::new(buffer).to_dlpack().unwrap();
        assert!(export.view().is_read_only());
        assert_eq!(
            export.view().as_slice::<i32>().unwrap(),
            [1, 2],
            "no code writes it"
        );
    }
    assert_eq!(foreign.deleted.times(), 2);
}

/// Memory that is read-only and shared stays both when it is adopted. Other code may still write it, so an import of the next
/// export lends no plain slice.
#[test]
fn adopted_shared_memory_stays_shared() {
    let mut memory = [1_i32, 2];
    for (flags, shared) in [(0, false), (0, true), (1, false), (1, true)] {
        let foreign = Foreign {
            flags,
            ..Foreign::new(memory.as_mut_ptr().cast(), I32, &[2])
        };
        // SAFETY: a valid tensor over `memory`, which outlives it and is not written.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let managed = if shared { managed.shared() } else { managed };
        let buffer = SharedBuffer::<i32>::from_dlpack(managed).unwrap();
        let export = Arc::new(buffer).to_dlpack().unwrap();
        let view = export.view();
        assert_eq!(view.is_read_only(), flags == 1);
        // A writable buffer is written through every clone of it.
        let may_change = shared || flags == 0;
        assert_eq!(
            view.as_slice::<i32>() == Err(Error::MayChange),
            may_change,
            "flags {flags}, shared {shared}"
        );
    }
}

/// DTY-02: a byte other than 0 and 1 that a consumer writes into a `bool` does not become an invalid value; faults 71.
#[test]
fn bools_stay_valid_after_foreign_writes() {
    let buffer = SharedBuffer::copied_from(&[true, false, false]).unwrap();
    let export = Arc::new(buffer.clone()).to_dlpack().unwrap();
    // SAFETY: the write of a consumer to a writable tensor, on this thread.
    unsafe { buffer.as_ptr().cast::<u8>().wrapping_add(1).write(2) };
    let values = buffer.to_vec();
    assert!(values[0] && !values[2]);
    assert_eq!(u8::from(values[1]), 1, "0 or 1, and nothing else");
    assert_eq!(
        export.view().to_vec::<bool>().unwrap_err(),
        Error::NotBool { found: 2 }
    );
    drop(export);
    let mut alone = buffer;
    let slice = alone.get_mut().expect("this is the last handle");
    // SAFETY: every byte of a `bool` is initialised.
    let bytes = unsafe { core::slice::from_raw_parts(slice.as_ptr().cast::<u8>(), 3) };
    assert_eq!(bytes, [1, 1, 0]);

    let mut memory = [1_u8, 2];
    let foreign = Foreign::new(memory.as_mut_ptr(), BOOL, &[2]);
    // SAFETY: a valid tensor over `memory`, which outlives it.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let error = SharedBuffer::<bool>::from_dlpack(managed)
        .map(drop)
        .unwrap_err();
    assert_eq!(error, Error::NotBool { found: 2 });
    assert_eq!(foreign.deleted.times(), 1);
}

/// LAY-06: an empty tensor, which may have a null address, is not kept.
#[test]
fn empty_tensors() {
    let foreign = Foreign::new(core::ptr::null_mut(), U8, &[0]);
    // SAFETY: a valid tensor without elements.
    let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let buffer = SharedBuffer::<u8>::from_dlpack(managed).unwrap();
    assert_eq!(foreign.deleted.times(), 1, "it is not kept");
    assert!(buffer.is_empty() && buffer.to_vec().is_empty());
    assert_eq!(Arc::new(buffer).to_dlpack().unwrap().view().shape(), [0]);
}

/// The export that `share_root` makes of a buffer: it keeps the allocation and not the handle.
fn root<T: Plain>(buffer: &SharedBuffer<T>) -> Managed {
    let shared = share_root(&mut buffer.describe().unwrap(), None);
    shared.expect("it keeps itself").unwrap()
}

/// CAP-20: an export of a handle keeps the allocation, and not the handle. So a buffer that adopts it has the memory alone again.
#[test]
fn round_trips_of_a_handle_keep_no_tensor() {
    type Trip = fn(SharedBuffer<u8>) -> Result<Managed, Error>;
    let trips: [Trip; 5] = [
        |buffer| buffer.into_dlpack(),
        |buffer| buffer.into_dlpack_with(&ExportRequest::versioned()),
        |buffer| Arc::new(buffer).to_dlpack(),
        |buffer| Arc::new(buffer).into_dlpack(),
        |buffer| Box::new(buffer).into_dlpack(),
    ];
    for trip in trips {
        let mut buffer = SharedBuffer::<u8>::copied_from(&[1, 2, 3]).unwrap();
        let address = buffer.as_ptr();
        for _ in 0..if cfg!(miri) { 10 } else { 100_000 } {
            buffer = SharedBuffer::from_dlpack(trip(buffer).unwrap()).unwrap();
        }
        assert_eq!(buffer.as_ptr(), address);
        assert_eq!(buffer.try_as_mut_slice().unwrap(), [1, 2, 3]);
    }
    // A copy is still one.
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let buffer = SharedBuffer::<u8>::copied_from(&[1, 2, 3]).unwrap();
    let copy = buffer.clone().into_dlpack_with(&request).unwrap();
    assert_ne!(copy.view().as_ptr(), buffer.as_ptr().cast_const());
}

/// CAP-20: a buffer that adopts an export of its own memory, in whatever form it comes back, is another handle on the allocation.
#[test]
fn an_adopted_export_is_a_handle() {
    let reexport = |tensor: Managed| {
        let tensor = tensor.into_raw();
        // SAFETY: `into_raw` just returned the pointer, and this is its only use.
        unsafe { Managed::from_raw(tensor) }.unwrap().shared()
    };
    let halves =
        |tensor: Managed| reinterpret_bytes(tensor, dlpack_core::DataType::U8, &[6]).unwrap();
    let whole =
        |tensor: Managed| reinterpret_bytes(tensor, dlpack_core::DataType::U16, &[3]).unwrap();
    let ways: [&dyn Fn(Managed) -> Managed; 4] = [
        &|tensor| tensor,
        &reexport,
        &|tensor| whole(reexport(halves(reexport(tensor)))),
        &|tensor| {
            let legacy = tensor.into_legacy().unwrap();
            // SAFETY: `into_legacy` just returned the pointer, and this is its only use. Every import of a legacy struct is
            // read-only.
            unsafe { Managed::from_legacy(legacy) }.unwrap().shared()
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let mut buffer = SharedBuffer::copied_from(&[1_u16, 2, 3]).unwrap();
        let address = buffer.as_ptr();
        let read_only = number == 3;
        for _ in 0..if read_only { 1 } else { 3 } {
            buffer = SharedBuffer::from_dlpack(way(root(&buffer))).unwrap();
            assert_eq!(buffer.as_ptr(), address);
        }
        assert_eq!(buffer.to_vec(), [1, 2, 3]);
        assert_eq!(buffer.is_read_only(), read_only);
        // No tensor that holds the allocation is left.
        assert_eq!(buffer.get_mut().is_some(), !read_only, "way {number}");
        let other = SharedBuffer::<u16>::from_dlpack(way(root(&buffer))).unwrap();
        assert!(buffer.get_mut().is_none());
        drop(buffer);
        assert_eq!(other.to_vec(), [1, 2, 3]);
    }
}

/// CAP-20: memory that is read-only through one handle may be written through another, so the first lends no slice of it.
#[test]
fn a_read_only_handle_on_shared_memory_lends_no_slice() {
    let buffer = SharedBuffer::copied_from(&[1_u16, 2, 3]).unwrap();
    let mut tensor = root(&buffer).into_raw();
    // SAFETY: the tensor is not used elsewhere until it is imported.
    unsafe { tensor.as_mut() }.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    let tensor = unsafe { Managed::from_raw(tensor) }.unwrap();
    let reader = SharedBuffer::<u16>::from_dlpack(tensor).unwrap();
    assert!(reader.is_read_only() && reader.as_ptr() == buffer.as_ptr());
    let export = Arc::new(reader).to_dlpack().unwrap();
    assert_eq!(export.view().as_slice::<u16>(), Err(Error::MayChange));
    buffer.set(0, 9);
    assert_eq!(export.view().to_vec::<u16>().unwrap(), [9, 2, 3]);
}

/// CAP-20: a handle on a slice has the elements of that slice, and keeps the whole allocation.
#[test]
fn a_handle_on_a_slice_keeps_the_allocation() {
    let buffer = SharedBuffer::copied_from(&[1_u8, 2, 3, 4]).unwrap();
    let part = root(&buffer).slice(0, 1..3).unwrap();
    let mut part = SharedBuffer::<u8>::from_dlpack(part).unwrap();
    assert!(part.get_mut().is_none());
    drop(buffer);
    assert_eq!(part.get_mut().unwrap(), [2, 3]);
    let smaller = root(&part).slice(0, 1..2).unwrap();
    drop(part);
    assert_eq!(smaller.view().to_vec::<u8>().unwrap(), [3]);
}

/// CAP-09, CAP-20: a tensor outside of the allocation keeps its own owner, even if both are adjacent.
#[test]
fn a_root_keeps_only_tensors_in_its_allocation() {
    let buffer = SharedBuffer::copied_from(&[1.0_f32, 2.0]).unwrap();
    let keeper = share_allocation(&buffer.describe().unwrap()).unwrap();
    let mut memory = [3.0_f32, 4.0];
    let foreign = Foreign::new(memory.as_mut_ptr().cast(), F32, &[2]);
    // SAFETY: a valid tensor over `memory`, which is not used while the tensor lives.
    let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let tensor = keep_by_allocation(tensor.shared(), &keeper);
    assert_eq!(foreign.deleted.times(), 0);
    drop(tensor);
    assert_eq!(foreign.deleted.times(), 1);
    // The same address on another device is other memory.
    let foreign = Foreign {
        device: Device::cuda(0).into(),
        ..Foreign::new(buffer.as_ptr().cast(), F32, &[2])
    };
    // SAFETY: no code reads a tensor of that device.
    let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let tensor = keep_by_allocation(tensor.shared(), &keeper);
    assert_eq!(foreign.deleted.times(), 0);
    drop(tensor);
    // A vector has no allocation that can be shared.
    assert!(share_root(&mut vec![1.0_f32].describe().unwrap(), None).is_none());
    // A foreign tensor over memory of the allocation is kept by the allocation, and released at once.
    let foreign = Foreign::new(buffer.as_ptr().cast(), F32, &[2]);
    // SAFETY: a valid tensor over the memory of the buffer, which lives as long as `keeper`.
    let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let tensor = keep_by_allocation(tensor.shared(), &keeper);
    assert_eq!(foreign.deleted.times(), 1);
    drop((buffer, keeper));
    assert_eq!(tensor.view().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}
