//! What a consumer asks for, and what will be done about it, decided before anything is touched.
//!
//! A request is the arguments of Python's `__dlpack__`. Together with what is known of the tensor it gives a plan, or the
//! first rule that it breaks; nothing in here knows memory, drivers or Python, so every cell of the table is tested.
//!
//! ```text
//! ExportRequest { stream, max_version, dl_device, copy } ──┐
//!                                                          ├──> Plan { abi, transfer, device, flags } ──> Way
//! Subject { device, dtype, read_only, copied, legacy } ────┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `consumer` | what the number that Python calls `stream` means on which device |
//! | `plan` | which struct; shared, copied or refused; on which device; and the flags, as what is read-only is told to a consumer |

pub(crate) mod consumer;
pub(crate) mod plan;

pub use consumer::{Consumer, consumer};
pub use plan::{Plan, Subject, Transfer, plan};

pub use crate::version::{Abi, negotiate};

use crate::{Device, Version};

/// What to do with read-only data for a consumer of the legacy struct, which cannot say read-only.
///
/// ```
/// assert_eq!(dlpack_core::LegacyPolicy::default(), dlpack_core::LegacyPolicy::Copy);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum LegacyPolicy {
    /// Hand over a copy, unless the request forbids copies.
    #[default]
    Copy,
    /// Refuse.
    Refuse,
}

/// When memory of a device is freed after the consumer is done with it.
///
/// ```
/// assert_eq!(dlpack_core::ReleasePolicy::default(), dlpack_core::ReleasePolicy::Safe);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum ReleasePolicy {
    /// Behind the consumer's last use, in the order of the streams.
    #[default]
    Safe,
    /// At once.
    Immediate,
}

/// What a consumer asks for: the arguments of Python's `__dlpack__`, all of them optional.
///
/// The default asks for nothing, as consumers from before DLPack 1.0 do, and so gets the legacy
/// struct. [`ExportRequest::versioned`] asks for ours.
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
    /// The stream that the consumer will read on, in the numbering of its device kind.
    pub stream: Option<i64>,
    /// The newest version that the consumer understands.
    pub max_version: Option<Version>,
    /// Where the consumer wants the data.
    pub dl_device: Option<Device>,
    /// Always copy, never copy, or only if needed.
    pub copy: Option<bool>,
}

impl ExportRequest {
    /// Asks for the struct of DLPack 1.0 and later, and nothing else.
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
}
