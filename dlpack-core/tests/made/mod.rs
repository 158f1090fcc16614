//! Tensors of a foreign producer, in which each field can be wrong, with a counter of deleter calls.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each user of this module uses only some of it; the fuzz targets are another crate"
)]

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
use dlpack_core::abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    kDLCPU,
};
use std::sync::Arc;

/// Counts the calls of a tensor's deleter.
#[derive(Clone, Debug, Default)]
pub struct Deleted(Arc<AtomicUsize>);

impl Deleted {
    pub fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The fields of a tensor to make.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub data: *mut u8,
    pub device: DLDevice,
    /// If `None`, the length of `shape`.
    pub ndim: Option<i32>,
    pub dtype: DLDataType,
    pub shape: Option<Vec<i64>>,
    pub strides: Option<Vec<i64>>,
    /// By how many bytes the pointers to shape and strides are misaligned.
    pub skew: [usize; 2],
    pub byte_offset: u64,
    pub version: (u32, u32),
    pub flags: u64,
    pub has_deleter: bool,
    pub deleted: Deleted,
}

pub const U8: DLDataType = dtype(1, 8, 1);
pub const I32: DLDataType = dtype(0, 32, 1);
pub const F32: DLDataType = dtype(2, 32, 1);
pub const BOOL: DLDataType = dtype(6, 8, 1);

pub const fn dtype(code: u8, bits: u8, lanes: u16) -> DLDataType {
    DLDataType { code, bits, lanes }
}

impl Foreign {
    /// A tensor without a fault: contiguous, version 1.3, in host memory.
    pub fn new(data: *mut u8, dtype: DLDataType, shape: &[i64]) -> Self {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = shape[axis].max(1).wrapping_mul(strides[axis]);
        }
        Self {
            data,
            device: DLDevice {
                device_type: kDLCPU,
                device_id: 0,
            },
            ndim: None,
            dtype,
            shape: Some(shape.to_vec()),
            strides: Some(strides),
            skew: [0, 0],
            byte_offset: 0,
            version: (1, 3),
            flags: 0,
            has_deleter: true,
            deleted: Deleted::default(),
        }
    }

    pub fn strides(mut self, strides: &[i64]) -> Self {
        self.strides = Some(strides.to_vec());
        self
    }

    /// Makes the struct of DLPack 1.0 and later.
    pub fn versioned(&self) -> NonNull<DLManagedTensorVersioned> {
        unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
            // SAFETY: a consumer passes the live struct.
            let context = unsafe { (*tensor).manager_ctx };
            // SAFETY: the context of a tensor that `build` made; a consumer calls the deleter once.
            unsafe { free::<DLManagedTensorVersioned>(context) };
        }
        let (major, minor) = self.version;
        self.build(|manager_ctx, dl_tensor| DLManagedTensorVersioned {
            version: DLPackVersion { major, minor },
            manager_ctx,
            deleter: self.has_deleter.then_some(delete),
            flags: self.flags,
            dl_tensor,
        })
    }

    /// Makes the legacy struct.
    pub fn legacy(&self) -> NonNull<DLManagedTensor> {
        unsafe extern "C" fn delete(tensor: *mut DLManagedTensor) {
            // SAFETY: a consumer passes the live struct.
            let context = unsafe { (*tensor).manager_ctx };
            // SAFETY: the context of a tensor that `build` made; a consumer calls the deleter once.
            unsafe { free::<DLManagedTensor>(context) };
        }
        self.build(|manager_ctx, dl_tensor| DLManagedTensor {
            dl_tensor,
            manager_ctx,
            deleter: self.has_deleter.then_some(delete),
        })
    }

    fn build<M>(&self, managed: impl FnOnce(*mut c_void, DLTensor) -> M) -> NonNull<M> {
        let home = Box::into_raw(Box::new(Home {
            managed: None,
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            deleted: self.deleted.clone(),
        }));
        // SAFETY: the allocation was just leaked, so this is its only reference.
        let inside = unsafe { &mut *home };
        let list = |list: &mut Option<Vec<i64>>, skew| {
            let Some(list) = list else {
                return null_mut();
            };
            if skew != 0 {
                // An entry behind the misaligned list, so that a wrong read stays in the allocation.
                list.push(0);
            }
            list.as_mut_ptr().wrapping_byte_add(skew)
        };
        let len = self.shape.as_ref().map_or(0, Vec::len);
        let tensor = DLTensor {
            data: self.data.cast(),
            device: self.device,
            ndim: (self.ndim).unwrap_or_else(|| i32::try_from(len).expect("a small rank")),
            dtype: self.dtype,
            shape: list(&mut inside.shape, self.skew[0]),
            strides: list(&mut inside.strides, self.skew[1]),
            byte_offset: self.byte_offset,
        };
        NonNull::from(inside.managed.insert(managed(home.cast(), tensor)))
    }
}

/// The allocation with the struct and its lists.
struct Home<M> {
    managed: Option<M>,
    shape: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
    deleted: Deleted,
}

/// # Safety
///
/// `context` is that of a tensor made by `Foreign::build`, which is not used afterwards.
unsafe fn free<M>(context: *mut c_void) {
    // SAFETY: `Foreign::build` leaked this box, and the caller no longer uses it.
    let home = unsafe { Box::from_raw(context.cast::<Home<M>>()) };
    home.deleted.0.fetch_add(1, Ordering::SeqCst);
}

/// Frees a tensor without a deleter, as its producer may do after its last use.
///
/// # Safety
///
/// `tensor` comes from `Foreign::versioned`, and is not used afterwards.
pub unsafe fn free_versioned(tensor: NonNull<DLManagedTensorVersioned>) {
    // SAFETY: `tensor` is live, by this function's contract.
    let context = unsafe { (*tensor.as_ptr()).manager_ctx };
    // SAFETY: the context of a tensor of `Foreign::versioned`, which is not used afterwards.
    unsafe { free::<DLManagedTensorVersioned>(context) };
}

/// Frees a legacy tensor without a deleter, as its producer may do after its last use.
///
/// # Safety
///
/// `tensor` comes from `Foreign::legacy`, and is not used afterwards.
pub unsafe fn free_legacy(tensor: NonNull<DLManagedTensor>) {
    // SAFETY: `tensor` is live, by this function's contract.
    let context = unsafe { (*tensor.as_ptr()).manager_ctx };
    // SAFETY: the context of a tensor of `Foreign::legacy`, which is not used afterwards.
    unsafe { free::<DLManagedTensor>(context) };
}
