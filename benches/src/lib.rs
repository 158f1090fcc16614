//! The functions for `copies.py`: copies of memory that it describes, through the public API of `dlpack-core`.
//!
//! A foreign array becomes a loan of the bytes that it reaches, a description of its shape and strides, and an export with
//! `copy`, which is the copy that a consumer would get. Users have the same functions.
#![expect(unsafe_code, reason = "takes addresses from Python")]

use core::alloc::Layout;
use core::hint::black_box;
use core::slice;
use std::alloc::{alloc, dealloc, handle_alloc_error};

use dlpack_core::binding::export_with;
use dlpack_core::{Device, Element, Error, ExportRequest, Loan, Managed, Parts};

/// An array in NumPy's terms.
struct Array<'a> {
    first: *const u8,
    shape: &'a [i64],
    /// In items; `None` if the array is contiguous in row-major order.
    strides: Option<&'a [i64]>,
    itemsize: usize,
}

impl<'a> Array<'a> {
    /// # Safety
    ///
    /// `shape` has `ndim` entries; so has `strides`, unless it is null.
    unsafe fn new(
        first: *const u8,
        ndim: usize,
        shape: *const i64,
        strides: *const i64,
        itemsize: usize,
    ) -> Self {
        // SAFETY: the lists have `ndim` entries, by this function's contract.
        let list = |list| unsafe { slice::from_raw_parts(list, ndim) };
        Self {
            first,
            shape: list(shape),
            strides: (!strides.is_null()).then(|| list(strides)),
            itemsize,
        }
    }

    /// # Safety
    ///
    /// Every item that the shape and the strides reach is initialised memory that is not written meanwhile.
    unsafe fn copy(&self) -> Result<Managed, Error> {
        let copy = match self.itemsize {
            1 => Self::copy_of::<u8>,
            2 => Self::copy_of::<u16>,
            3 => Self::copy_of::<[u8; 3]>,
            4 => Self::copy_of::<f32>,
            8 => Self::copy_of::<f64>,
            12 => Self::copy_of::<[f32; 3]>,
            16 => Self::copy_of::<[f64; 2]>,
            20 => Self::copy_of::<[f32; 5]>,
            other => panic!("no element has {other} bytes"),
        };
        // SAFETY: same contract as this function's; any bytes are valid elements.
        unsafe { copy(self) }
    }

    /// # Safety
    ///
    /// The contract of [`Array::copy`], and the items are values of `T`.
    unsafe fn copy_of<T: Element>(&self) -> Result<Managed, Error> {
        let mut parts = Parts::new().shape(self.shape);
        let (mut before, mut behind) = (0, 0);
        if let Some(strides) = self.strides {
            for (&extent, &stride) in self.shape.iter().zip(strides) {
                let far = (extent - 1) * stride;
                before += far.min(0);
                behind += far.max(0);
            }
            parts = parts.strides(strides).offset(-before);
        } else {
            behind = self.shape.iter().product::<i64>() - 1;
        }
        let ahead = usize::try_from(-before).expect("never above 0");
        let items = usize::try_from(behind - before + 1).expect("the array lies in memory");
        let start = self.first.cast::<T>().wrapping_sub(ahead);
        // SAFETY: the loan consists of the items of the array, which are initialised by this function's contract.
        let loan = unsafe { Loan::from_raw_parts(start, items, Device::CPU) };
        let mut descriptor = parts.describe(loan)?;
        let request = ExportRequest {
            copy: Some(true),
            ..ExportRequest::versioned()
        };
        // SAFETY: a copy is requested, so the export does not keep the memory.
        unsafe { export_with((), &mut descriptor, &request) }
    }
}

/// Copies an array and keeps the copy; null if that fails.
///
/// # Safety
///
/// The array is initialised memory that is not written meanwhile; `shape` has `ndim` entries, and `strides` is null or has as
/// many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_copy(
    first: *const u8,
    ndim: usize,
    shape: *const i64,
    strides: *const i64,
    itemsize: usize,
) -> *mut Managed {
    // SAFETY: the lists are as long as this function's contract says.
    let array = unsafe { Array::new(first, ndim, shape, strides, itemsize) };
    // SAFETY: the memory is initialised and not written, by this function's contract.
    match unsafe { array.copy() } {
        Ok(copy) => Box::into_raw(Box::new(copy)),
        Err(error) => {
            eprintln!("bench_copy: {error}");
            core::ptr::null_mut()
        }
    }
}

/// The address of the bytes of a copy.
///
/// # Safety
///
/// `copy` comes from [`bench_copy`] and was not passed to [`bench_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_data(copy: *const Managed) -> *const u8 {
    // SAFETY: `copy` is live, by this function's contract.
    unsafe { &*copy }.view().as_ptr()
}

/// Frees a copy.
///
/// # Safety
///
/// `copy` comes from [`bench_copy`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_free(copy: *mut Managed) {
    // SAFETY: `bench_copy` boxed the copy, which is not used afterwards.
    drop(unsafe { Box::from_raw(copy) });
}

/// Copies an array into new memory and frees it, this many times.
///
/// # Safety
///
/// The contract of [`bench_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_copy_turns(
    first: *const u8,
    ndim: usize,
    shape: *const i64,
    strides: *const i64,
    itemsize: usize,
    turns: u64,
) {
    // SAFETY: the lists are as long as this function's contract says.
    let array = unsafe { Array::new(first, ndim, shape, strides, itemsize) };
    for _ in 0..turns {
        // SAFETY: the memory is initialised and not written, by this function's contract.
        black_box(&unsafe { array.copy() });
    }
}

/// The C functions for contiguous bytes, this many times: `malloc`, `memcpy`, `free`.
///
/// # Safety
///
/// `first` is the address of `bytes` initialised bytes, more than 0, that are not written meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_memcpy_turns(first: *const u8, bytes: usize, turns: u64) {
    let layout = Layout::from_size_align(bytes, 16).expect("an array of that size exists");
    for _ in 0..turns {
        // SAFETY: the size is not 0.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the source has `bytes` bytes by this function's contract; the destination is new and as large.
        unsafe { core::ptr::copy_nonoverlapping(first, memory, bytes) };
        black_box(memory);
        // SAFETY: `alloc` just returned the memory for this layout.
        unsafe { dealloc(memory, layout) };
    }
}
