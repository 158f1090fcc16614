//! Devices: a device type and an index. [`DeviceType`] is a newtype of an integer, not an enum, because later minor versions of
//! DLPack add device types.
// ABI-02

use core::fmt;

use crate::abi;

/// A kind of device, as its number in `dlpack.h`.
///
/// Minor releases add numbers, so every `i32` is a valid value. [`DeviceType::is_known`] returns whether DLPack 1.3
/// defines a number. The numbers that `dlpack.h` has added since have a name here, for messages, but are not exported or imported.
///
/// ```
/// use dlpack_core::DeviceType;
///
/// assert_eq!(DeviceType::CUDA.0, 2);
/// assert!(!DeviceType(99).is_known());
/// assert!(!DeviceType::TPU.is_known());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct DeviceType(pub i32);

macro_rules! device_types {
    ($($name:ident = $number:ident, $text:literal;)*) => {
        impl DeviceType {
            $(#[doc = concat!("`", stringify!($number), "`, written `", $text, "`.")]
            pub const $name: Self = Self(abi::$number);)*

            /// The name that errors and `Display` use, if DLPack 1.3 or a later header has the number.
            ///
            /// ```
            /// assert_eq!(dlpack_core::DeviceType::ROCM.name(), Some("rocm"));
            /// ```
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $(abi::$number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}
device_types! {
    CPU = kDLCPU, "cpu";
    CUDA = kDLCUDA, "cuda";
    CUDA_HOST = kDLCUDAHost, "cuda_host";
    OPENCL = kDLOpenCL, "opencl";
    VULKAN = kDLVulkan, "vulkan";
    METAL = kDLMetal, "metal";
    VPI = kDLVPI, "vpi";
    ROCM = kDLROCM, "rocm";
    ROCM_HOST = kDLROCMHost, "rocm_host";
    EXT_DEV = kDLExtDev, "ext_dev";
    CUDA_MANAGED = kDLCUDAManaged, "cuda_managed";
    ONE_API = kDLOneAPI, "one_api";
    WEB_GPU = kDLWebGPU, "web_gpu";
    HEXAGON = kDLHexagon, "hexagon";
    MAIA = kDLMAIA, "maia";
    TRN = kDLTrn, "trn";
    TPU = kDLTPU, "tpu";
    TPU_HOST = kDLTPUHost, "tpu_host";
    ASCEND = kDLAscend, "ascend";
}

impl DeviceType {
    /// Whether DLPack 1.3 defines this number.
    ///
    /// ```
    /// assert!(dlpack_core::DeviceType::CPU.is_known());
    /// ```
    // Two ranges, so that the check of a constant device costs an export nothing.
    #[must_use]
    #[inline]
    pub const fn is_known(self) -> bool {
        matches!(self.0, abi::kDLCPU..=abi::kDLOpenCL | abi::kDLVulkan..=abi::kDLTrn)
    }

    /// Whether the CPU can read this memory through its address.
    ///
    /// ```
    /// use dlpack_core::DeviceType;
    ///
    /// assert!(DeviceType::CUDA_HOST.is_host_readable());
    /// assert!(!DeviceType::CUDA.is_host_readable());
    /// ```
    #[must_use]
    pub const fn is_host_readable(self) -> bool {
        self.is_pinned() || matches!(self, Self::CPU | Self::CUDA_MANAGED)
    }

    /// Whether this is page-locked host memory, which the CPU accesses like any other host memory.
    // DEV-10
    pub(crate) const fn is_pinned(self) -> bool {
        matches!(self, Self::CUDA_HOST | Self::ROCM_HOST)
    }

    /// Whether `data` is an address that an offset can be added to. Otherwise it is a handle.
    ///
    /// ```
    /// use dlpack_core::DeviceType;
    ///
    /// assert!(DeviceType::ROCM.is_addressable());
    /// assert!(!DeviceType::METAL.is_addressable());
    /// ```
    #[must_use]
    pub const fn is_addressable(self) -> bool {
        !matches!(
            self,
            Self::OPENCL | Self::VULKAN | Self::METAL | Self::WEB_GPU
        )
    }
}

/// The GPU API that provides the streams of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamApi {
    Cuda,
    Hip,
}

impl DeviceType {
    /// The API with streams that order work on memory of this kind, if there is one.
    pub(crate) const fn stream_api(self) -> Option<StreamApi> {
        match self {
            Self::CUDA | Self::CUDA_HOST | Self::CUDA_MANAGED => Some(StreamApi::Cuda),
            Self::ROCM | Self::ROCM_HOST => Some(StreamApi::Hip),
            _ => None,
        }
    }
}

/// Implements `Debug` by `Display`.
macro_rules! debug_as_display {
    ($($type:ty),+) => {$(
        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )+};
}
pub(crate) use debug_as_display;
debug_as_display!(DeviceType, Device);

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "device type {}", self.0),
        }
    }
}

/// One device: a kind and an index among those of its kind.
///
/// ```
/// use dlpack_core::Device;
///
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// assert_eq!(Device::cuda(1).to_string(), "cuda:1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind of device.
    pub device_type: DeviceType,
    /// The index among devices of that kind; 0 for host memory, pinned memory and managed memory.
    pub device_id: i32,
}

impl Device {
    /// Host memory.
    pub const CPU: Self = Self::new(DeviceType::CPU, 0);

    /// Returns the device of this kind with this index.
    ///
    /// ```
    /// use dlpack_core::{Device, DeviceType};
    ///
    /// assert_eq!(Device::new(DeviceType::CPU, 0), Device::CPU);
    /// ```
    #[must_use]
    pub const fn new(device_type: DeviceType, device_id: i32) -> Self {
        Self {
            device_type,
            device_id,
        }
    }

    /// Returns the device with the index that DLPack requires: 0 for all memory that the host can read, which is one device of its
    /// kind.
    // DEV-03
    #[inline]
    pub(crate) const fn normalized(self) -> Self {
        if self.device_id != 0 && self.device_type.is_host_readable() {
            return Self::new(self.device_type, 0);
        }
        self
    }

    /// Returns the CUDA device with this index.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Device::cuda(3).device_id, 3);
    /// ```
    #[must_use]
    pub const fn cuda(device_id: i32) -> Self {
        Self::new(DeviceType::CUDA, device_id)
    }

    /// Returns the ROCm device with this index.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Device::rocm(0).to_string(), "rocm:0");
    /// ```
    #[must_use]
    pub const fn rocm(device_id: i32) -> Self {
        Self::new(DeviceType::ROCM, device_id)
    }

    /// Returns the Metal device with this index.
    ///
    /// ```
    /// assert!(!dlpack_core::Device::metal(0).device_type.is_addressable());
    /// ```
    #[must_use]
    pub const fn metal(device_id: i32) -> Self {
        Self::new(DeviceType::METAL, device_id)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::CPU {
            return f.write_str("cpu");
        }
        write!(f, "{}:{}", self.device_type, self.device_id)
    }
}

/// The index of host memory, pinned memory and managed memory becomes 0, as DLPack requires, whatever the struct says.
impl From<abi::DLDevice> for Device {
    #[inline]
    fn from(device: abi::DLDevice) -> Self {
        Self::new(DeviceType(device.device_type), device.device_id).normalized()
    }
}

impl From<Device> for abi::DLDevice {
    fn from(device: Device) -> Self {
        Self {
            device_type: device.device_type.0,
            device_id: device.device_id,
        }
    }
}

/// The trait of fields marked `device`: a [`Device`], or a user's type that converts to one.
///
/// ```
/// use dlpack_core::{AsDevice, Device};
///
/// enum Place { Host, Gpu(u8) }
///
/// impl AsDevice for Place {
///     fn as_device(&self) -> Device {
///         match self {
///             Place::Host => Device::CPU,
///             Place::Gpu(index) => Device::cuda((*index).into()),
///         }
///     }
/// }
/// assert_eq!(Place::Gpu(1).as_device(), Device::cuda(1));
/// assert_eq!(Place::Host.as_device(), Device::CPU);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a DLPack device",
    label = "expected `Device` or a type implementing `AsDevice`"
)]
pub trait AsDevice {
    /// Returns the device that the memory is on.
    fn as_device(&self) -> Device;
}

impl AsDevice for Device {
    #[inline]
    fn as_device(&self) -> Device {
        *self
    }
}

impl<D: AsDevice + ?Sized> AsDevice for &D {
    #[inline]
    fn as_device(&self) -> Device {
        (**self).as_device()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use alloc::{format, string::ToString};

    /// Numbers that only later headers define are unknown here, because exports are stamped with version 1.3.
    // DEV-14, DEV-19
    #[test]
    fn unreleased_devices_are_unknown() {
        let released = [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];
        for number in -1..32 {
            let known = DeviceType(number).is_known();
            assert_eq!(known, released.contains(&number), "{number}");
        }
        for (later, name) in [
            (DeviceType::TPU, "tpu:0"),
            (DeviceType::TPU_HOST, "tpu_host:0"),
            (DeviceType::ASCEND, "ascend:0"),
        ] {
            let found = Device::new(later, 0);
            assert_eq!(found.to_string(), name);
            assert!(!later.is_known() && !later.is_host_readable());
            let refused = Error::UnknownDevice { found }.to_string();
            assert_eq!(refused, format!("DLPack 1.3 has no {name}"));
        }
    }
}
