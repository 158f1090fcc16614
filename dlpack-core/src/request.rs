//! A consumer's request, and the plan that answers it. The plan is made before any memory is accessed.
//!
//! A request has the arguments of Python's `__dlpack__`. Together with the properties of the tensor it yields a plan, or the
//! error of the first rule that it breaks. This module knows no memory, drivers or Python, so tests cover every combination.
//!
//! ```text
//! ExportRequest { stream, max_version, dl_device, copy } ──┐
//!                                                          ├──> Plan { abi, transfer, device, flags } ──> TransferPath
//! Subject { device, dtype, read_only, copied, legacy } ────┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `consumer` | the meaning of Python's `stream` argument on each device |
//! | `plan` | which struct; shared, copied or refused; on which device; and the flags, among them read-only |

pub(crate) mod consumer;
pub(crate) mod plan;

pub use consumer::{Consumer, consumer};
pub use plan::{Plan, Subject, Transfer, plan};

pub use crate::version::{Abi, negotiate};

use crate::{Device, Version};

/// How read-only data is exported to a consumer of the legacy struct, which has no read-only flag.
///
/// ```
/// assert_eq!(dlpack_core::LegacyPolicy::default(), dlpack_core::LegacyPolicy::Copy);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum LegacyPolicy {
    /// Exports a copy, unless the request forbids copies.
    #[default]
    Copy,
    /// Returns an error.
    Refuse,
}

/// When device memory is freed after the consumer has released it.
///
/// ```
/// assert_eq!(dlpack_core::ReleasePolicy::default(), dlpack_core::ReleasePolicy::Safe);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum ReleasePolicy {
    /// After the consumer's last use, in stream order.
    #[default]
    Safe,
    /// Immediately, without waiting for the consumer's work.
    Immediate,
}

/// The request of a consumer: the arguments of Python's `__dlpack__`, all of them optional.
///
/// The default is the request of a consumer from before DLPack 1.0, which gets the legacy struct. [`ExportRequest::versioned`]
/// requests the struct of DLPack 1.0 and later.
///
/// ```
/// use dlpack_core::{DLPack, ExportRequest};
///
/// let copy = ExportRequest { copy: Some(true), ..ExportRequest::versioned() };
/// let managed = vec![1.0_f32; 4].into_dlpack_with(&copy)?;
/// assert!(managed.view().is_copied());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExportRequest {
    /// The stream on which the consumer will read, as the array API standard numbers it for the kind of device.
    pub stream: Option<i64>,
    /// The newest version that the consumer understands.
    pub max_version: Option<Version>,
    /// The device on which the consumer wants the data; `None` for the device of the data. A copy of pinned or managed memory is in
    /// ordinary host memory, so a request that names the device of such memory gets the data itself or an error.
    pub dl_device: Option<Device>,
    /// `true`: always copy; `false`: never copy; `None`: copy only if needed. Items smaller than a byte can be copied on the host only
    /// if they are contiguous.
    pub copy: Option<bool>,
}

impl ExportRequest {
    /// Requests the struct of DLPack 1.0 and later, and nothing else.
    ///
    /// ```
    /// use dlpack_core::{ExportRequest, Version};
    ///
    /// assert_eq!(ExportRequest::versioned().max_version, Some(Version::CURRENT));
    /// ```
    #[must_use]
    pub const fn versioned() -> Self {
        Self {
            stream: None,
            max_version: Some(Version::CURRENT),
            dl_device: None,
            copy: None,
        }
    }

    /// The device on which the consumer wants the data, with the index that DLPack requires.
    // DEV-03, DEV-05
    #[inline]
    pub(crate) fn requested_device(&self) -> Option<Device> {
        self.dl_device.map(Device::normalized)
    }
}
