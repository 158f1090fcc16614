//! `OwnedSlice`, `try_into_vec`, `try_into_slice`: the address does not change, the memory is released once, and there is no
//! slice of memory that other code may write.
#![expect(unsafe_code, reason = "passes tensors through pointers")]

mod allocator;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use allocator::{LIVE, with_budget};
use bytes::Bytes;
use dlpack_core::array::View;
use dlpack_core::binding::{Strided, keep_strided};
use dlpack_core::layout::Dims;
use dlpack_core::{
    Buffer, DLPack, DataType, Error, ExportRequest, Loan, Managed, OwnedSlice, SharedBuffer,
};

/// Elements that count how often they are released.
struct Tracked(Vec<u16>, Arc<AtomicUsize>);

impl Drop for Tracked {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl Buffer for Tracked {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.0[..])
    }
}

fn slice_of(tensor: Managed) -> Result<OwnedSlice<u16>, Error> {
    View::<u16, Dims>::new(tensor)?.into_slice()
}

fn imported(tensor: Managed) -> Managed {
    // SAFETY: `into_raw` just returned the pointer, and this is its only use. No other code has the memory.
    unsafe { Managed::from_raw(tensor.into_raw()) }.unwrap()
}

#[test]
fn a_slice_keeps_the_address_and_is_released_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let tracked = Tracked(vec![1, 2, 3], drops.clone());
    let address = tracked.0.as_ptr().cast::<u8>();
    let slice = slice_of(imported(tracked.into_dlpack().unwrap())).unwrap();
    let other = slice.clone();
    let bytes = Bytes::from_owner(slice.into_bytes());
    assert_eq!(bytes.as_ptr(), address);
    assert_eq!(bytes.len(), 6);
    drop(bytes);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    assert_eq!(*other, [1, 2, 3]);
    thread::spawn(move || drop(other)).join().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn many_threads_read_and_release() {
    let drops = Arc::new(AtomicUsize::new(0));
    let tracked = Tracked((0..100).collect(), drops.clone());
    let slice = slice_of(tracked.into_dlpack().unwrap()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            let slice = slice.clone();
            scope.spawn(move || {
                let parts: Vec<_> = (0..50).map(|_| slice.clone()).collect();
                drop(slice);
                let sums = parts.iter().map(|part| part.iter().sum::<u16>());
                assert!(sums.into_iter().all(|sum| sum == 4950));
            });
        }
    });
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(slice);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn memory_that_other_code_may_write_lends_no_slice() {
    let tensor = || vec![1_u16, 2].into_dlpack().unwrap();
    let may_change = |tensor| slice_of(tensor).unwrap_err() == Error::MayChange;
    assert!(may_change(tensor().shared()));
    let buffer = SharedBuffer::copied_from(&[1_u16, 2]).unwrap();
    assert!(may_change(buffer.clone().into_dlpack().unwrap()));
    // A re-export of such a tensor, and a slice of the re-export.
    let again = tensor()
        .shared()
        .into_dlpack_with(&ExportRequest::versioned());
    assert!(may_change(again.unwrap()));
    // The caller may guarantee that no other code writes.
    let view = View::<u16, [i64; 1]>::new(tensor().shared()).unwrap();
    // SAFETY: no other code has the memory.
    let slice = unsafe { view.assume_unshared() }.into_slice();
    assert_eq!(*slice.unwrap(), [1, 2]);
}

#[test]
fn tensors_that_are_no_slice_are_refused() {
    let matrix = vec![[1_u16, 2], [3, 4]].into_dlpack().unwrap();
    let transposed = matrix.permute(&[1, 0]).unwrap();
    assert!(matches!(
        slice_of(transposed),
        Err(Error::NotContiguous { .. })
    ));
    // Four numbers at an odd address inside of nine bytes.
    let describe = |bytes: &mut Vec<u8>| {
        let odd = usize::from(bytes.as_ptr().addr() % 2 == 0);
        let data = bytes[odd..].as_mut_ptr();
        Ok(Strided {
            data,
            shape: &[4],
            strides: Some(&[2]),
            dtype: DataType::U16,
            read_only: true,
        })
    };
    // SAFETY: the vector keeps the bytes where they are, and nothing writes them.
    let tensor = unsafe { keep_strided(vec![0_u8; 9], describe, |error: Error| error) };
    let view = View::<u16, [i64; 1]>::new(tensor.unwrap()).unwrap();
    // SAFETY: nothing writes the bytes.
    let misaligned = unsafe { view.assume_unshared() }.into_slice();
    assert!(
        matches!(misaligned, Err(Error::Misaligned { .. })),
        "{misaligned:?}"
    );
}

#[test]
fn an_owner_is_dropped_if_it_lends_nothing() {
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = || Tracked(vec![1], drops.clone());
    let refused = OwnedSlice::<u16>::new(owner(), |_| Err(Error::MayChange));
    assert_eq!(refused.unwrap_err(), Error::MayChange);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    let panicked = std::panic::catch_unwind(|| {
        OwnedSlice::<u16>::new(owner(), |_| panic!("the owner lends nothing"))
    });
    assert!(panicked.is_err());
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    let tracked = owner();
    let failed = with_budget(0, || OwnedSlice::new(tracked, |owner| Ok(&owner.0[..])));
    assert!(matches!(failed, Err(Error::OutOfMemory { .. })));
    assert_eq!(drops.load(Ordering::Relaxed), 3);
}

#[test]
fn an_owner_that_holds_its_elements_inline_is_not_moved_again() {
    let slice = OwnedSlice::new([1_u8, 2, 3], |owner| Ok(&owner[..])).unwrap();
    let address = slice.as_ptr();
    let (moved, other) = (Box::new(slice.clone()), slice);
    assert_eq!((moved.as_ptr(), other.as_ptr()), (address, address));
    assert_eq!(moved[..], other[..]);
}

#[test]
fn empty_slices_and_exports() {
    let empty = slice_of(Vec::<u16>::new().into_dlpack().unwrap()).unwrap();
    assert!(empty.is_empty() && Bytes::from_owner(empty.into_bytes()).is_empty());
    let flags = OwnedSlice::new(vec![true, false], |flags| Ok(&flags[..])).unwrap();
    assert_eq!(*flags.clone().into_bytes(), [1, 0]);
    let address = flags.as_ptr();
    let tensor = flags.into_dlpack().unwrap();
    assert!(tensor.view().is_read_only());
    assert_eq!(tensor.view().as_slice::<bool>().unwrap().as_ptr(), address);
}

#[test]
fn the_vec_of_a_tensor_comes_back_with_its_capacity() {
    let live = LIVE.get();
    let mut vec = Vec::with_capacity(10);
    vec.extend([[1.0_f32, 2.0], [3.0, 4.0]]);
    let address = vec.as_ptr();
    let tensor = vec.into_dlpack().unwrap();
    let tensor = tensor.reshape(&[4]).unwrap();
    let tensor = tensor.reshape(&[2, 2]).unwrap();
    let vec: Vec<[f32; 2]> = tensor.try_into_vec().unwrap();
    assert_eq!((vec.as_ptr(), vec.capacity()), (address, 10));
    assert_eq!(vec, [[1.0, 2.0], [3.0, 4.0]]);
    // `bool`s, which no consumer may write; a legacy struct; no elements.
    let flags = vec![true, false].into_dlpack().unwrap();
    assert_eq!(flags.try_into_vec::<bool>().unwrap(), [true, false]);
    let legacy = vec![1_u8]
        .into_dlpack_with(&ExportRequest::default())
        .unwrap();
    assert!(legacy.view().version().is_none());
    assert_eq!(legacy.try_into_vec::<u8>().unwrap(), [1]);
    let empty: Vec<u64> = Vec::with_capacity(3);
    let empty = empty.into_dlpack().unwrap().try_into_vec::<u64>().unwrap();
    assert_eq!((empty.len(), empty.capacity()), (0, 3));
    drop((vec, empty));
    assert_eq!(LIVE.get(), live);
}

#[test]
fn a_tensor_without_a_vec_is_returned() {
    let vec = || vec![1_u32, 2, 3, 4];
    let refused = |tensor: Managed| {
        let tensor = tensor.try_into_vec::<u32>().unwrap_err();
        assert!(!tensor.view().shape().is_empty());
        drop(tensor);
    };
    refused(vec().into_dlpack().unwrap().shared());
    refused(imported(vec().into_dlpack().unwrap()));
    refused(Arc::new(vec()).to_dlpack().unwrap());
    refused(vec().into_boxed_slice().into_dlpack().unwrap());
    refused(SharedBuffer::from(vec()).into_dlpack().unwrap());
    refused(Box::new(vec()).into_dlpack().unwrap());
    // Slices, other orders, re-exports, another element type of the same size.
    refused(vec().into_dlpack().unwrap().slice(0, 0..3).unwrap());
    refused(vec().into_dlpack().unwrap().slice(0, 1..4).unwrap());
    let square = vec().into_dlpack().unwrap().reshape(&[2, 2]).unwrap();
    refused(square.permute(&[1, 0]).unwrap());
    let floats = vec![1.0_f32; 4].into_dlpack().unwrap();
    refused(floats);
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    refused(vec().into_dlpack_with(&copy).unwrap());
    // The vector has elements of another type than the numbers of the tensor.
    refused(vec![[1_u32, 2]].into_dlpack().unwrap());
}

/// A type with the layout of its vector, and its own drop function.
struct Announced(Vec<u32>, [Arc<AtomicUsize>; 0]);

static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);

impl Drop for Announced {
    fn drop(&mut self) {
        ANNOUNCED.fetch_add(1, Ordering::Relaxed);
    }
}

impl Buffer for Announced {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.0[..])
    }
}

#[test]
fn a_type_with_the_layout_of_a_vec_is_not_taken_for_one() {
    let tensor = Announced(vec![1, 2], []).into_dlpack().unwrap();
    drop(tensor.try_into_vec::<u32>().unwrap_err());
    assert_eq!(ANNOUNCED.load(Ordering::Relaxed), 1);
}

#[test]
fn the_vec_of_a_buffer_comes_back_with_its_capacity() {
    let mut vec = Vec::with_capacity(7);
    vec.extend([1_u16, 2]);
    let address = vec.as_ptr();
    let buffer = SharedBuffer::from(vec);
    let tensor = buffer.clone().into_dlpack().unwrap();
    let buffer = buffer.try_into_vec().unwrap_err();
    buffer.set(0, 9);
    drop(tensor);
    let vec = buffer.try_into_vec().unwrap();
    assert_eq!((vec.as_ptr(), vec.capacity()), (address, 7));
    assert_eq!(vec, [9, 2]);
    let own = SharedBuffer::<u16>::zeroed(2).unwrap();
    assert_eq!(own.try_into_vec().unwrap_err().to_vec(), [0, 0]);
}

#[test]
fn a_buffer_with_other_users_is_returned() {
    let buffer = SharedBuffer::from(vec![true, false]);
    let array = buffer.clone().into_dlpack().unwrap();
    let buffer = buffer.try_into_slice().unwrap_err();
    // A consumer writes a byte that is no valid `bool`.
    // SAFETY: the buffer has two bytes, which other code writes atomically or not at all.
    unsafe { buffer.as_ptr().cast::<u8>().write(7) };
    drop(array);
    let slice = buffer.try_into_slice().unwrap();
    assert_eq!(*slice, [true, false]);
    assert_eq!(*slice.into_bytes(), [1, 0]);
}
