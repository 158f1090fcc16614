//! The least work of an export: a C program without any checks.
#![expect(unsafe_code, reason = "plays a producer in C")]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use dlpack_core::abi;

use super::Image;

/// The struct, shape, strides and the owner, in one allocation.
#[repr(C)]
pub(crate) struct Block<O> {
    tensor: abi::DLManagedTensorVersioned,
    shape: [i64; 3],
    strides: [i64; 3],
    owner: O,
}

/// An uninitialised box of the same size as an export's block.
pub(crate) fn block<O>() -> Box<MaybeUninit<Block<O>>> {
    Box::new_uninit()
}

/// Exports an owner of an image.
pub(crate) fn export<O: AsRef<Image>>(owner: O) -> Exported {
    let [h, w, c] = owner
        .as_ref()
        .dims
        .map(|extent| extent.cast_signed() as i64);
    let data = owner.as_ref().pixels.as_ptr().cast_mut().cast::<c_void>();
    let block = Box::into_raw(Box::new(Block {
        tensor: abi::DLManagedTensorVersioned {
            version: abi::DLPackVersion { major: 1, minor: 3 },
            manager_ctx: core::ptr::null_mut(),
            deleter: Some(delete::<O>),
            flags: 0,
            dl_tensor: abi::DLTensor {
                data,
                device: abi::DLDevice {
                    device_type: abi::kDLCPU,
                    device_id: 0,
                },
                ndim: 3,
                dtype: abi::DLDataType {
                    code: abi::kDLFloat,
                    bits: 32,
                    lanes: 1,
                },
                shape: core::ptr::null_mut(),
                strides: core::ptr::null_mut(),
                byte_offset: 0,
            },
        },
        shape: [h, w, c],
        strides: [w * c, c, 1],
        owner,
    }));
    // SAFETY: the block was just allocated, and no other code has it.
    let fields = unsafe { &mut *block };
    fields.tensor.manager_ctx = block.cast();
    fields.tensor.dl_tensor.shape = fields.shape.as_mut_ptr();
    fields.tensor.dl_tensor.strides = fields.strides.as_mut_ptr();
    Exported(NonNull::from(&mut fields.tensor))
}

unsafe extern "C" fn delete<O>(tensor: *mut abi::DLManagedTensorVersioned) {
    // SAFETY: the tensor was made by `export`, so it is live until this call.
    let block = unsafe { (*tensor).manager_ctx };
    // SAFETY: `export` boxed the block as this type, and the caller no longer uses it.
    drop(unsafe { Box::from_raw(block.cast::<Block<O>>()) });
}

/// A tensor whose deleter is called when it is dropped.
pub(crate) struct Exported(NonNull<abi::DLManagedTensorVersioned>);

impl Exported {
    /// Takes ownership of a tensor.
    ///
    /// # Safety
    ///
    /// The tensor is valid and has a deleter, which no other code calls.
    pub(crate) unsafe fn new(tensor: NonNull<abi::DLManagedTensorVersioned>) -> Self {
        Self(tensor)
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: the tensor is valid until its deleter is called.
        if let Some(deleter) = unsafe { self.0.as_ref() }.deleter {
            // SAFETY: no other code calls the deleter.
            unsafe { deleter(self.0.as_ptr()) };
        }
    }
}
