//! Slices of a `SharedBuffer`: lent only while no other code has the memory, and for filling before any other code has it.

#![expect(
    unsafe_code,
    reason = "makes foreign tensors, and plays a consumer that writes"
)]

mod made;

use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::borrow::Cow;
use std::panic::catch_unwind;
use std::sync::Arc;

use dlpack_core::array::View;
use dlpack_core::binding::share_root;
use dlpack_core::{DLPack, DataType, Error, ExportRequest, FromDLPack, Managed, SharedBuffer};
use made::{Foreign, I32, U8};

/// Asserts that neither slice is lent, and that a copy is made instead.
fn assert_in_use(buffer: &mut SharedBuffer<u8>, who: &str) {
    assert_eq!(buffer.try_as_slice(), Err(Error::BufferInUse), "{who}");
    assert_eq!(buffer.try_as_mut_slice(), Err(Error::BufferInUse), "{who}");
    assert!(buffer.get_mut().is_none(), "{who}");
    let copy = buffer.slice_or_copy().unwrap();
    assert!(matches!(copy, Cow::Owned(_)), "{who}");
    let copy = copy.into_owned();
    assert_eq!(copy, buffer.to_vec(), "{who}");
}

/// FLG-05: a slice is lent only while no clone, no export and no consumer in C has the memory.
#[test]
fn slices_need_the_only_handle() {
    let mut buffer = SharedBuffer::copied_from(&[1_u8, 2, 3]).unwrap();
    let address = buffer.as_ptr().cast_const();
    assert_eq!(buffer.try_as_slice().unwrap().as_ptr(), address);
    buffer.try_as_mut_slice().unwrap()[0] = 9;
    let borrowed = buffer.slice_or_copy().unwrap();
    assert!(matches!(borrowed, Cow::Borrowed([9, 2, 3])));

    let clone = buffer.clone();
    assert_in_use(&mut buffer, "a clone");
    drop(clone);
    let moved = buffer.clone().into_dlpack().unwrap();
    assert_in_use(&mut buffer, "an export");
    let view = View::<u8, [i64; 1]>::new(moved).unwrap();
    assert_in_use(&mut buffer, "a view");
    let part = view.into_managed().slice(0, 1..2).unwrap();
    assert_in_use(&mut buffer, "a part");
    let pointer = part.into_raw();
    assert_in_use(&mut buffer, "a consumer in C");
    // SAFETY: the pointer comes from `into_raw`, and is used only here.
    drop(unsafe { Managed::from_raw(pointer) }.unwrap());
    let root = share_root(&mut buffer.describe().unwrap(), None);
    let root = root.expect("it keeps itself").unwrap();
    assert_in_use(&mut buffer, "an export that holds the allocation");
    let adopted = SharedBuffer::<u8>::from_dlpack(root).unwrap();
    assert_in_use(&mut buffer, "a buffer that adopted the export");
    drop(adopted);
    // A copy for a consumer has other memory.
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copy = Arc::new(buffer.clone()).to_dlpack_with(&request).unwrap();
    assert_eq!(buffer.try_as_slice().unwrap(), [9, 2, 3]);
    drop(copy);
}

/// Two buffers over parts of one allocation prevent each other's slices, even if the parts do not overlap.
#[test]
fn parts_of_one_memory_exclude_each_other() {
    let whole = SharedBuffer::copied_from(&[1_u8, 2, 3, 4]).unwrap();
    let part = |range| {
        let tensor = share_root(&mut whole.describe().unwrap(), None);
        let tensor = tensor.unwrap().unwrap().slice(0, range).unwrap();
        SharedBuffer::<u8>::from_dlpack(tensor).unwrap()
    };
    let (mut front, mut back) = (part(0..2), part(2..4));
    drop(whole);
    assert_in_use(&mut front, "the back");
    assert_in_use(&mut back, "the front");
    drop(front);
    assert_eq!(back.try_as_mut_slice().unwrap(), [3, 4]);
}

/// Memory that a producer may still write is never lent; a tensor without other users is.
#[test]
fn imported_memory_is_lent_if_nothing_else_has_it() {
    let mut memory = [1_i32, 2];
    for (flags, shared, read, write) in [
        (
            0,
            true,
            Err(Error::ForeignBuffer),
            Err(Error::ForeignBuffer),
        ),
        (
            1,
            true,
            Err(Error::ForeignBuffer),
            Err(Error::ForeignBuffer),
        ),
        (0, false, Ok(()), Ok(())),
        (1, false, Ok(()), Err(Error::ReadOnly)),
    ] {
        let foreign = Foreign {
            flags,
            ..Foreign::new(memory.as_mut_ptr().cast(), I32, &[2])
        };
        // SAFETY: a valid tensor over `memory`, which is accessed only through it while it lives.
        let managed = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        let managed = if shared { managed.shared() } else { managed };
        let mut buffer = SharedBuffer::<i32>::from_dlpack(managed).unwrap();
        let case = format!("flags {flags}, shared {shared}");
        assert_eq!(buffer.try_as_slice().map(drop), read, "{case}");
        assert_eq!(buffer.try_as_mut_slice().map(drop), write, "{case}");
        assert_eq!(*buffer.slice_or_copy().unwrap(), [1, 2], "{case}");
        let clone = buffer.clone();
        // Memory that nothing writes is lent to several.
        let never_written = flags == 1 && !shared;
        assert_eq!(buffer.try_as_slice().is_ok(), never_written, "{case}");
        drop(clone);
        // The buffer of the same bytes lends slices under the same conditions.
        let mut bytes = buffer.cast::<u8>().unwrap();
        assert_eq!(bytes.try_as_slice().map(drop), read, "bytes, {case}");
        assert_eq!(bytes.try_as_mut_slice().map(drop), write, "bytes, {case}");
        drop(bytes);
        assert_eq!(foreign.deleted.times(), 1, "{case}");
    }
    let mut own = SharedBuffer::<u8>::from_dlpack(vec![1_u8, 2].into_dlpack().unwrap()).unwrap();
    own.try_as_mut_slice().unwrap()[1] = 5;
    assert_eq!(own.to_vec(), [1, 5]);
    let shared: Arc<[u8]> = Arc::from([1_u8, 2]);
    let mut import = SharedBuffer::<u8>::from_dlpack(Arc::new(shared.clone()).to_dlpack().unwrap());
    let import = import.as_mut().unwrap();
    assert_eq!(import.try_as_slice().unwrap(), &*shared);
    assert_eq!(import.try_as_mut_slice(), Err(Error::ReadOnly));
}

/// The error names the code that has the memory, and what to do.
#[test]
fn errors_name_the_other_user_and_the_remedy() {
    let text = Error::BufferInUse.to_string();
    assert!(text.contains("an array, an export or a clone") && text.contains("`to_vec`"));
    let text = Error::ForeignBuffer.to_string();
    assert!(text.contains("imported") && text.contains("`to_vec`") && text.contains("`Promise`"));
}

/// CAP-20: a slice that is lent after a consumer on another thread released the tensor shows all writes of the consumer. (Under
/// Miri, missing synchronisation is reported as a data race.)
#[test]
fn a_slice_comes_after_the_last_access_of_a_consumer() {
    let rounds = if cfg!(miri) { 3 } else { 200 };
    let mut buffer = SharedBuffer::<u64>::zeroed(4).unwrap();
    for round in 1..=rounds {
        let consumers = [0, 2].map(|at| {
            let tensor = buffer.clone().into_dlpack().unwrap();
            std::thread::spawn(move || {
                let data = tensor.view().as_ptr().cast::<u64>().cast_mut();
                // SAFETY: a consumer writes to its own elements of a writable tensor.
                unsafe { data.wrapping_add(at).write(round) };
                // SAFETY: the adjacent element belongs to the same consumer.
                unsafe { data.wrapping_add(at + 1).write(round) };
                drop(tensor);
            })
        });
        let elements = loop {
            match buffer.try_as_mut_slice() {
                Ok(_) => break buffer.try_as_mut_slice().unwrap(),
                Err(error) => assert_eq!(error, Error::BufferInUse),
            }
            std::thread::yield_now();
        };
        assert_eq!(elements, [round; 4]);
        elements.fill(0);
        for consumer in consumers {
            consumer.join().unwrap();
        }
    }
}

/// DTY-02: a `bool` in which a consumer wrote another byte is valid in the slice.
#[test]
fn bools_of_a_slice_are_valid() {
    let mut buffer = SharedBuffer::copied_from(&[true, false]).unwrap();
    let tensor = buffer.clone().into_dlpack().unwrap();
    // SAFETY: the write of a consumer to a writable tensor, on this thread.
    unsafe { buffer.as_ptr().cast::<u8>().wrapping_add(1).write(7) };
    drop(tensor);
    let elements = buffer.try_as_slice().unwrap();
    // SAFETY: every byte of a `bool` is initialised.
    let bytes = unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), 2) };
    assert_eq!(bytes, [1, 1]);
}

/// CPY-14: a new buffer is filled through a slice of its memory, which is aligned and zeroed.
#[test]
fn a_buffer_is_filled_before_it_is_shared() {
    let mut address = ptr::null();
    let mut filled = SharedBuffer::filled(1000, |elements: &mut [f64]| {
        assert!(elements.iter().all(|&element| element == 0.0));
        address = elements.as_ptr();
        elements.fill(1.5);
    })
    .unwrap();
    assert_eq!(filled.as_ptr().cast_const(), address);
    assert_eq!(address.addr() % 256, 0);
    assert_eq!(filled.try_as_slice().unwrap(), [1.5; 1000]);
    assert!(!filled.into_dlpack().unwrap().view().is_read_only());

    assert!(SharedBuffer::filled(0, |elements: &mut [u8]| assert!(elements.is_empty())).is_ok());
    let empty = SharedBuffer::filled(5, |elements: &mut [[u32; 0]]| assert_eq!(elements.len(), 5));
    assert_eq!(empty.unwrap().len(), 5);
    let too_much = SharedBuffer::filled(usize::MAX / 4, |_: &mut [u64]| unreachable!());
    assert!(matches!(too_much.map(drop), Err(Error::OutOfMemory { .. })));
}

/// If the function fails or panics, there is no buffer, and its memory is freed.
#[test]
fn a_function_that_fails_leaves_no_buffer() {
    #[derive(Debug, PartialEq)]
    enum Failed {
        Ours(Error),
        Theirs(u8),
    }
    impl From<Error> for Failed {
        fn from(error: Error) -> Self {
            Self::Ours(error)
        }
    }
    let failed = SharedBuffer::try_filled(2, |elements: &mut [u8]| {
        elements[0] = 1;
        Err(Failed::Theirs(elements[0]))
    });
    assert_eq!(failed.map(drop), Err(Failed::Theirs(1)));
    let too_much = SharedBuffer::try_filled(usize::MAX, |_: &mut [u8]| Err(Failed::Theirs(0)));
    assert!(matches!(
        too_much.map(drop),
        Err(Failed::Ours(Error::OutOfMemory { .. }))
    ));
    let filled = SharedBuffer::try_filled(2, |elements: &mut [u8]| {
        elements[1] = 3;
        Ok::<(), Failed>(())
    });
    assert_eq!(filled.unwrap().to_vec(), [0, 3]);
    let panicked = catch_unwind(|| SharedBuffer::filled(2, |_: &mut [u8]| panic!("of the user")));
    assert!(panicked.is_err());
    let panicked = catch_unwind(|| {
        SharedBuffer::filled_uninit(2, |_: &mut [MaybeUninit<u8>]| panic!("of the user"))
    });
    assert!(panicked.is_err());
}

/// Writes every element, and returns the slice.
fn write_all<T: Copy>(elements: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    elements.iter_mut().for_each(|element| {
        element.write(value);
    });
    // SAFETY: the loop wrote every element.
    unsafe { &mut *(ptr::from_mut(elements) as *mut [T]) }
}

/// Memory that was not zeroed is taken only with the proof that all of it was written.
#[test]
fn uninitialised_memory_is_accepted_only_with_its_own_slice() {
    let filled = SharedBuffer::filled_uninit(3, |elements| write_all(elements, 7_u16)).unwrap();
    assert_eq!(filled.to_vec(), [7; 3]);
    assert_eq!(filled.as_ptr().addr() % 256, 0);
    let empty = SharedBuffer::filled_uninit(0, |elements| write_all(elements, 7_u16));
    assert!(empty.unwrap().is_empty());
    let any = SharedBuffer::filled_uninit(0, |_| &mut [] as &mut [u8]);
    assert!(any.unwrap().is_empty());

    let refused = |body: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
        let text = payload.downcast_ref::<&str>().copied();
        assert_eq!(
            text,
            Some("`fill` returns the slice that it was given, all of it")
        );
    };
    let elsewhere = Box::into_raw(Box::new([1_u8]));
    refused(&|| {
        // SAFETY: `Box::into_raw` returned the address, and this slice is its only use.
        let other = SharedBuffer::filled_uninit(1, |_| unsafe { &mut *elsewhere });
        drop(other);
    });
    // SAFETY: `Box::into_raw` returned the address, and the slice is gone.
    drop(unsafe { Box::from_raw(elsewhere) });
    refused(&|| {
        let shorter =
            SharedBuffer::filled_uninit(2, |elements| write_all(&mut elements[..1], 1_u8));
        drop(shorter);
    });
    refused(&|| {
        let later = SharedBuffer::filled_uninit(2, |elements| write_all(&mut elements[1..], 1_u8));
        drop(later);
    });
    refused(&|| drop(SharedBuffer::filled_uninit(2, |_| &mut [] as &mut [u8])));
    let too_much = SharedBuffer::<u64>::filled_uninit(usize::MAX / 4, |_| unreachable!());
    assert!(matches!(too_much.map(drop), Err(Error::OutOfMemory { .. })));
}

/// An image in a class is flipped by a function over slices: no element is copied except by that function.
#[test]
fn a_kept_picture_is_flipped_by_a_function_over_slices() {
    fn flip(from: &[u8], to: &mut [u8], row: usize) {
        for (from, to) in from.chunks_exact(row).rev().zip(to.chunks_exact_mut(row)) {
            to.copy_from_slice(from);
        }
    }

    struct Image {
        pixels: SharedBuffer<u8>,
        row: usize,
    }
    impl Image {
        fn flipped(&mut self) -> Result<Self, Error> {
            let from = self.pixels.try_as_slice()?;
            let pixels = SharedBuffer::filled(from.len(), |to| flip(from, to, self.row))?;
            Ok(Self {
                pixels,
                row: self.row,
            })
        }
    }

    let pixels = SharedBuffer::copied_from(&[1, 2, 3, 4, 5, 6]).unwrap();
    let mut image = Image { pixels, row: 2 };
    assert_eq!(image.flipped().unwrap().pixels.to_vec(), [5, 6, 3, 4, 1, 2]);
    let array = image.pixels.clone().into_dlpack().unwrap();
    assert!(matches!(image.flipped().map(drop), Err(Error::BufferInUse)));
    drop(array);
    assert!(image.flipped().is_ok());
    let foreign = Foreign::new([1_u8, 2].as_mut_ptr(), U8, &[0]);
    // SAFETY: a valid tensor without elements.
    let empty = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
    let pixels = SharedBuffer::from_dlpack(empty.shared()).unwrap();
    assert!(
        Image { pixels, row: 2 }
            .flipped()
            .unwrap()
            .pixels
            .is_empty()
    );
}

/// The bytes of a buffer are elements of another type, in the same memory, and can be lent.
#[test]
fn bytes_are_cast_to_elements() {
    let bytes: Vec<u8> = [1.5_f32, -2.0]
        .into_iter()
        .flat_map(f32::to_ne_bytes)
        .collect();
    let bytes = SharedBuffer::copied_from(&bytes).unwrap();
    let (address, clone) = (bytes.as_ptr(), bytes.clone());
    let mut numbers = bytes.cast::<f32>().unwrap();
    assert_eq!(numbers.as_ptr().cast::<u8>(), address);
    assert_eq!(numbers.to_vec(), [1.5, -2.0]);
    assert_eq!(numbers.try_as_slice(), Err(Error::BufferInUse));
    drop(clone);
    numbers.try_as_mut_slice().unwrap()[0] = 3.0;
    let mut pairs = numbers.cast::<[u16; 2]>().unwrap();
    assert_eq!(pairs.len(), 2);
    assert!(pairs.try_as_slice().is_ok());
    let mut flags = pairs.cast::<bool>().unwrap();
    // In memory that other code may write, any byte but 0 is `true`.
    let flags = flags.try_as_slice().unwrap();
    assert_eq!(flags.len(), 8);

    let odd = SharedBuffer::copied_from(&[1_u8, 2, 3]).unwrap();
    let error = odd.clone().cast::<u16>().map(drop).unwrap_err();
    let (bytes, element_bits) = (3, 16);
    assert_eq!(
        error,
        Error::PartialElement {
            bytes,
            element_bits
        }
    );
    let part = share_root(&mut odd.describe().unwrap(), None);
    let part = part.unwrap().unwrap().slice(0, 1..3).unwrap();
    let part = SharedBuffer::<u8>::from_dlpack(part).unwrap();
    let error = part.cast::<u16>().map(drop).unwrap_err();
    assert!(matches!(error, Error::Misaligned { .. }), "{error}");
    let no_bytes = odd.cast::<[u8; 0]>().map(drop).unwrap_err();
    assert!(matches!(no_bytes, Error::PartialElement { .. }));
    let empty = SharedBuffer::<u8>::zeroed(0).unwrap().cast::<f64>();
    assert!(empty.unwrap().is_empty());
    // An empty vector has a dangling address, which need not be aligned.
    let empty = SharedBuffer::<u8>::from(vec![]).cast::<u64>();
    assert!(empty.unwrap().is_empty());
    let no_items = SharedBuffer::<[u32; 0]>::zeroed(3).unwrap();
    assert!(no_items.cast::<u8>().unwrap().is_empty());
}

/// DTY-02: memory that nothing writes is not reinterpreted as invalid `bool`s.
#[test]
fn read_only_bytes_are_checked_when_they_become_bools() {
    let adopt = |bytes: Vec<u8>| {
        let tensor = Arc::new(bytes).to_dlpack().unwrap();
        SharedBuffer::<u8>::from_dlpack(tensor).unwrap()
    };
    let mut flags = adopt(vec![1, 0]).cast::<bool>().unwrap();
    assert_eq!(flags.try_as_slice().unwrap(), [true, false]);
    let error = adopt(vec![1, 2]).cast::<bool>().map(drop).unwrap_err();
    assert_eq!(error, Error::NotBool { found: 2 });
}

/// The bytes of a tensor are reinterpreted as items of a data type known at run time, in another shape.
#[test]
fn bytes_are_cast_to_a_data_type_of_run_time() {
    let bytes = || {
        SharedBuffer::<u8>::zeroed(12)
            .unwrap()
            .into_dlpack()
            .unwrap()
    };
    for (dtype, shape) in [
        (DataType::F32, &[3, 1][..]),
        (DataType::U16, &[2, 3]),
        (DataType::U8, &[12]),
        (DataType::BOOL, &[3, 4]),
    ] {
        let address = bytes();
        let data = address.view().as_ptr();
        let cast = address.cast(dtype, shape).unwrap();
        let view = cast.view();
        assert_eq!((view.dtype(), view.as_ptr()), (dtype, data));
        let shape: Vec<_> = shape.iter().map(|&extent| extent as i64).collect();
        assert_eq!(view.shape(), shape);
        assert!(!view.is_read_only());
    }
    let error = bytes().cast(DataType::F32, &[4]).unwrap_err();
    let (found, needed) = (12, 16);
    assert_eq!(error, Error::Bytes { found, needed });
    let turned = vec![[1_u8, 2], [3, 4]].into_dlpack().unwrap();
    let turned = turned.permute(&[1, 0]).unwrap();
    let error = turned.cast(DataType::U16, &[2]).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }));
    let odd = bytes().slice(0, 1..5).unwrap();
    let error = odd.cast(DataType::F32, &[1]).unwrap_err();
    assert!(matches!(error, Error::Misaligned { .. }));
    let error = bytes().cast(DataType::U8, &[usize::MAX]).unwrap_err();
    assert!(matches!(error, Error::BadExtent { .. }));
}

/// CAP-06: casts change a tensor of this crate in place, so any number of them leave one tensor to release. A chain would exceed
/// the stack.
#[test]
fn casts_build_no_chain() {
    let mut tensor = vec![7_u32; 3].into_dlpack().unwrap();
    let data = tensor.view().as_ptr();
    for _ in 0..if cfg!(miri) { 20 } else { 100_000 } {
        let floats = tensor.cast(DataType::F32, &[3]).unwrap();
        assert_eq!(floats.view().shape(), [3]);
        tensor = floats.cast(DataType::U8, &[2, 6]).unwrap();
    }
    assert_eq!(tensor.view().as_ptr(), data);
    let tensor = tensor.cast(DataType::U32, &[3]).unwrap();
    assert_eq!(tensor.try_into_vec::<u32>().unwrap(), [7; 3]);
}
