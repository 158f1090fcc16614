//! The C declarations of dlpack.h 1.3, in header order, and `release`, which calls a tensor's deleter.
//!
//! The names are those of the C header. Device types and type codes are plain integers, because a peer with a newer minor
//! version may send values that are not listed here. The layouts of 1.0 to 1.3 are identical, so one set of structs serves
//! all of 1.x. The asserts below pin these layouts at compile time. `tests/abi.rs` compares them with the real header, and
//! with the layouts that a C compiler computes for the same declarations.
//!
//! Every function pointer here has the C calling convention and must not unwind.
//! The struct of the draft before 1.0 is deliberately absent.

#![expect(unsafe_code, reason = "calls the deleter of a struct")]
#![expect(non_upper_case_globals, reason = "enum values keep their names of C")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{align_of, offset_of, size_of};
use core::ptr::NonNull;

/// Asserts size, alignment and every offset at compile time: `T: size, align { field @ offset, .. }`.
macro_rules! layout {
    ($type:ident: $size:literal, $align:literal { $($field:ident @ $offset:literal),+ $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            assert!(align_of::<$type>() == $align);
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

/// Declares the values of a C enum as documented constants.
macro_rules! constants {
    ($type:ty, $of:literal: $($name:ident = $value:literal, $about:literal;)+) => {
        $(#[doc = concat!($of, $about)] pub const $name: $type = $value;)+
    };
}

/// Implements `release` for an owning tensor. The deleter is at the same offset in every major version.
macro_rules! release {
    ($($type:ident)+) => {$(
        impl $type {
            /// Calls the deleter. A tensor without a deleter needs no release.
            ///
            /// # Safety
            ///
            /// `this` is a valid tensor, and the caller is its only owner: it is not used afterwards, and its deleter is not
            /// called again. A versioned struct of another major version need only be valid up to its deleter field.
            #[inline]
            pub unsafe fn release(this: NonNull<Self>) {
                // SAFETY: by this function's contract `this` is valid up to its deleter, which has a fixed offset.
                let deleter = unsafe { (*this.as_ptr()).deleter };
                if let Some(deleter) = deleter {
                    // SAFETY: by this function's contract the caller owns the tensor, and does not call the deleter again.
                    unsafe { deleter(this.as_ptr()) };
                }
            }
        }
    )+};
}
release!(DLManagedTensor DLManagedTensorVersioned);

/// The major version of the ABI declared here. Another major version has another layout after `flags`.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// The minor version of the ABI declared here. Minor versions only add values.
pub const DLPACK_MINOR_VERSION: u32 = 3;

/// Flag: the consumer must not write to the memory.
// ABI-09: the header says `1UL`, 32 bits wide on Windows; the field is 64 bits wide everywhere.
pub const DLPACK_FLAG_BITMASK_READ_ONLY: u64 = 1 << 0;
/// Flag: the producer made this tensor as a copy, and states that the consumer is its only owner.
pub const DLPACK_FLAG_BITMASK_IS_COPIED: u64 = 1 << 1;
/// Flag: elements narrower than a byte are stored one per byte instead of packed.
pub const DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

/// The version of the DLPack ABI that a tensor or table was made for.
///
/// ```
/// let version = dlpack_core::abi::DLPackVersion { major: 1, minor: 3 };
/// assert_eq!(size_of_val(&version), 8);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DLPackVersion {
    /// Incremented when the layout changes.
    pub major: u32,
    /// Incremented when values are added.
    pub minor: u32,
}

// ABI-01
layout!(DLPackVersion: 8, 4 { major @ 0, minor @ 4 });

constants! { i32, "Device type: ":
    kDLCPU = 1, "host memory.";
    kDLCUDA = 2, "CUDA device memory.";
    kDLCUDAHost = 3, "host memory pinned by CUDA.";
    kDLOpenCL = 4, "OpenCL.";
    kDLVulkan = 7, "Vulkan.";
    kDLMetal = 8, "Apple's Metal.";
    kDLVPI = 9, "Verilog simulator.";
    kDLROCM = 10, "ROCm device memory.";
    kDLROCMHost = 11, "host memory pinned by ROCm.";
    kDLExtDev = 12, "reserved for extensions, to test new devices with.";
    kDLCUDAManaged = 13, "CUDA managed (unified) memory.";
    kDLOneAPI = 14, "memory shared by a oneAPI runtime.";
    kDLWebGPU = 15, "WebGPU.";
    kDLHexagon = 16, "Qualcomm's Hexagon DSP.";
    kDLMAIA = 17, "Microsoft's MAIA.";
    kDLTrn = 18, "AWS Trainium.";
}

// The header's main branch adds these after the release 1.3, and its version is still 1.3. No export has them.
// DEV-19
constants! { i32, "Device type, newer than DLPack 1.3: ":
    kDLTPU = 19, "memory of a TPU.";
    kDLTPUHost = 20, "host memory pinned for a TPU.";
    kDLAscend = 21, "memory of a Huawei Ascend NPU.";
}

/// The device of a memory region: the kind of device, and its index among devices of that kind.
///
/// ```
/// let cpu = dlpack_core::abi::DLDevice { device_type: dlpack_core::abi::kDLCPU, device_id: 0 };
/// assert_eq!(size_of_val(&cpu), 8);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// One of the device type constants, or a number that this version does not know.
    pub device_type: i32,
    /// The index of the device among those of its type, 0 for host memory.
    pub device_id: i32,
}

// ABI-02
layout!(DLDevice: 8, 4 { device_type @ 0, device_id @ 4 });

constants! { u8, "Type code: ":
    kDLInt = 0, "signed integer.";
    kDLUInt = 1, "unsigned integer.";
    kDLFloat = 2, "IEEE floating point.";
    kDLOpaqueHandle = 3, "opaque handle, for testing.";
    kDLBfloat = 4, "bfloat16.";
    kDLComplex = 5, "complex number; the bits count both parts.";
    kDLBool = 6, "boolean.";
    kDLFloat8_e3m4 = 7, "8-bit float, 3 exponent and 4 mantissa bits.";
    kDLFloat8_e4m3 = 8, "8-bit float, 4 exponent and 3 mantissa bits.";
    kDLFloat8_e4m3b11fnuz = 9, "8-bit float, 4 exponent and 3 mantissa bits, bias 11, finite, one NaN, no negative zero.";
    kDLFloat8_e4m3fn = 10, "8-bit float, 4 exponent and 3 mantissa bits, finite, with NaN.";
    kDLFloat8_e4m3fnuz = 11, "8-bit float, 4 exponent and 3 mantissa bits, finite, one NaN, no negative zero.";
    kDLFloat8_e5m2 = 12, "8-bit float, 5 exponent and 2 mantissa bits.";
    kDLFloat8_e5m2fnuz = 13, "8-bit float, 5 exponent and 2 mantissa bits, finite, one NaN, no negative zero.";
    kDLFloat8_e8m0fnu = 14, "8-bit power of two, no sign, no zero, with NaN.";
    kDLFloat6_e2m3fn = 15, "6-bit float, 2 exponent and 3 mantissa bits, finite.";
    kDLFloat6_e3m2fn = 16, "6-bit float, 3 exponent and 2 mantissa bits, finite.";
    kDLFloat4_e2m1fn = 17, "4-bit float, 2 exponent and 1 mantissa bit, finite.";
}

// Added to the header's main branch after the release 1.3.
// DTY-17
constants! { u8, "Type code, newer than DLPack 1.3: ":
    kDLBcomplex = 18, "complex number of two bfloat16; the bits count both parts.";
}

/// The type of one element: type code, width and number of lanes.
///
/// ```
/// let float32 = dlpack_core::abi::DLDataType { code: dlpack_core::abi::kDLFloat, bits: 32, lanes: 1 };
/// assert_eq!(size_of_val(&float32), 4);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// One of the type code constants, or a number that this version does not know.
    pub code: u8,
    /// The width of one lane in bits.
    pub bits: u8,
    /// The number of lanes of a vector type, 1 for scalars.
    pub lanes: u16,
}

// ABI-03
layout!(DLDataType: 4, 2 { code @ 0, bits @ 1, lanes @ 2 });

/// A tensor without an owner: data pointer, device, dtype, shape and strides.
///
/// ```
/// assert_eq!(core::mem::offset_of!(dlpack_core::abi::DLTensor, data), 0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The address of the allocation, or a handle where the device has no addresses; may be null when the tensor is empty.
    pub data: *mut c_void,
    /// The device that `data` is on.
    pub device: DLDevice,
    /// The number of dimensions, which is also the length of `shape` and `strides`.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The shape, `ndim` entries; may be null when `ndim` is 0.
    pub shape: *mut i64,
    /// The strides in elements, `ndim` of them; null means row-major before 1.2 and is forbidden since, unless `ndim` is 0.
    pub strides: *mut i64,
    /// The offset of the first element from `data`, in bytes.
    pub byte_offset: u64,
}

// ABI-04
#[cfg(target_pointer_width = "64")]
layout!(DLTensor: 48, 8 {
    data @ 0, device @ 8, ndim @ 16, dtype @ 20, shape @ 24, strides @ 32, byte_offset @ 40,
});

/// The legacy owning tensor, from before DLPack 1.0: the contents of a capsule named "dltensor".
///
/// ```
/// assert_eq!(core::mem::offset_of!(dlpack_core::abi::DLManagedTensor, dl_tensor), 0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// A pointer for the producer; consumers do not use it.
    pub manager_ctx: *mut c_void,
    /// Releases the tensor, this struct included. The consumer calls it once; null means that there is nothing to release.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

// ABI-05
#[cfg(target_pointer_width = "64")]
layout!(DLManagedTensor: 64, 8 { dl_tensor @ 0, manager_ctx @ 48, deleter @ 56 });

/// The owning tensor of DLPack 1.x: the contents of a capsule named "dltensor_versioned".
///
/// ```
/// assert_eq!(core::mem::offset_of!(dlpack_core::abi::DLManagedTensorVersioned, version), 0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of this struct. A consumer that does not support the major version only calls the deleter.
    pub version: DLPackVersion,
    /// A pointer for the producer; consumers do not use it.
    pub manager_ctx: *mut c_void,
    /// Releases the tensor, this struct included. The consumer calls it once; null means that there is nothing to release.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// A bitwise OR of the flag constants.
    // ABI-07: up to and including this field the layout is the same in every future major.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

// ABI-06
#[cfg(target_pointer_width = "64")]
layout!(DLManagedTensorVersioned: 80, 8 {
    version @ 0, manager_ctx @ 8, deleter @ 16, flags @ 24, dl_tensor @ 32,
});

/// Declares nullable C function pointer types.
macro_rules! functions {
    ($($(#[$doc:meta])+ $name:ident($($argument:ident: $type:ty),+) $(-> $result:ty)?;)+) => {$(
        $(#[$doc])+
        ///
        /// ```
        #[doc = concat!("let absent: dlpack_core::abi::", stringify!($name), " = None;")]
        /// assert_eq!(size_of_val(&absent), size_of::<usize>());
        /// ```
        pub type $name = Option<unsafe extern "C" fn($($argument: $type),+) $(-> $result)?>;
    )+};
}
functions! {
    /// The callback by which an allocator reports an error: its `error_ctx`, the kind of the error, the message.
    ///
    /// The header declares this type inline, for a parameter named `SetError`.
    DLPackSetError(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char);

    /// Allocates a tensor with the dtype, shape and device of `prototype`; 0 on success, else -1 after calling `set_error`.
    DLPackManagedTensorAllocator(
        prototype: *mut DLTensor,
        out: *mut *mut DLManagedTensorVersioned,
        error_ctx: *mut c_void,
        set_error: DLPackSetError
    ) -> c_int;

    /// Exports a Python object as an owning tensor without synchronising streams; 0 on success, else -1 with a Python error set.
    DLPackManagedTensorFromPyObjectNoSync(
        py_object: *mut c_void,
        out: *mut *mut DLManagedTensorVersioned
    ) -> c_int;

    /// Converts an owning tensor to a Python object without synchronising streams; 0 on success, else -1 with a Python error set.
    DLPackManagedTensorToPyObjectNoSync(
        tensor: *mut DLManagedTensorVersioned,
        out_py_object: *mut *mut c_void
    ) -> c_int;

    /// Fills a tensor that borrows from a Python object, without ownership; 0 on success, else -1 with a Python error set.
    DLPackDLTensorFromPyObjectNoSync(py_object: *mut c_void, out: *mut DLTensor) -> c_int;

    /// Returns the stream that the framework currently uses on a device; 0 on success, else -1 with a Python error set.
    DLPackCurrentWorkStream(
        device_type: i32,
        device_id: i32,
        out_current_stream: *mut *mut c_void
    ) -> c_int;
}

/// The header of every exchange table: its version, and a pointer to a table of an older version.
///
/// ```
/// assert_eq!(core::mem::offset_of!(dlpack_core::abi::DLPackExchangeAPIHeader, version), 0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLPackExchangeAPIHeader {
    /// The version of the table that follows.
    pub version: DLPackVersion,
    /// A table of an older version, for consumers that do not support this one, or null.
    pub prev_api: *mut Self,
}

// ABI-08
#[cfg(target_pointer_width = "64")]
layout!(DLPackExchangeAPIHeader: 16, 8 { version @ 0, prev_api @ 8 });

/// The table of functions by which C code exchanges a framework's tensors without calling Python.
///
/// ```
/// assert_eq!(core::mem::offset_of!(dlpack_core::abi::DLPackExchangeAPI, header), 0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLPackExchangeAPI {
    /// The header. A consumer checks its version before it reads another field.
    pub header: DLPackExchangeAPIHeader,
    /// Allocates a tensor; never null.
    pub managed_tensor_allocator: DLPackManagedTensorAllocator,
    /// Exports a Python object as an owning tensor; never null.
    pub managed_tensor_from_py_object_no_sync: DLPackManagedTensorFromPyObjectNoSync,
    /// Converts an owning tensor to a Python object; never null.
    pub managed_tensor_to_py_object_no_sync: DLPackManagedTensorToPyObjectNoSync,
    /// Exports a Python object as a borrowed tensor; may be null.
    pub dltensor_from_py_object_no_sync: DLPackDLTensorFromPyObjectNoSync,
    /// Returns the framework's current stream; never null.
    pub current_work_stream: DLPackCurrentWorkStream,
}

// ABI-08
#[cfg(target_pointer_width = "64")]
layout!(DLPackExchangeAPI: 56, 8 {
    header @ 0,
    managed_tensor_allocator @ 16,
    managed_tensor_from_py_object_no_sync @ 24,
    managed_tensor_to_py_object_no_sync @ 32,
    dltensor_from_py_object_no_sync @ 40,
    current_work_stream @ 48,
});

/// The name of a capsule that holds a legacy [`DLManagedTensor`].
pub const CAPSULE_LEGACY: &CStr = c"dltensor";
/// The name of a legacy capsule after a consumer has taken its tensor.
pub const CAPSULE_LEGACY_USED: &CStr = c"used_dltensor";
/// The name of a capsule that holds a [`DLManagedTensorVersioned`].
pub const CAPSULE_VERSIONED: &CStr = c"dltensor_versioned";
/// The name of a versioned capsule after a consumer has taken its tensor.
pub const CAPSULE_VERSIONED_USED: &CStr = c"used_dltensor_versioned";
/// The name of a capsule that holds a [`DLPackExchangeAPI`].
pub const CAPSULE_EXCHANGE_API: &CStr = c"dlpack_exchange_api";

/// The Python attribute, on a type, that holds the exchange table in a capsule (DLPack 1.3).
pub const ATTRIBUTE_EXCHANGE_API: &str = "__dlpack_c_exchange_api__";
/// The Python attribute, on a type, that holds the exchange table's address as an int (DLPack 1.2).
pub const ATTRIBUTE_EXCHANGE_API_1_2: &str = "__c_dlpack_exchange_api__";
