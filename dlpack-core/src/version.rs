//! DLPack versions, and which of the two structs a request gets; pure.

use core::fmt;

use crate::abi;

/// A DLPack version.
///
/// ```
/// use dlpack_core::Version;
///
/// assert_eq!(Version::CURRENT.to_string(), "1.3");
/// assert!(Version::new(1, 0) < Version::CURRENT);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// Changes when the layout of the structs does.
    pub major: u32,
    /// Changes when values are added.
    pub minor: u32,
}

impl Version {
    /// The version that this crate implements and stamps on what it exports.
    pub const CURRENT: Self = Self::new(abi::DLPACK_MAJOR_VERSION, abi::DLPACK_MINOR_VERSION);

    /// A version by its numbers.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Version::new(0, 8).to_string(), "0.8");
    /// ```
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<abi::DLPackVersion> for Version {
    fn from(version: abi::DLPackVersion) -> Self {
        Self::new(version.major, version.minor)
    }
}

impl From<Version> for abi::DLPackVersion {
    fn from(version: Version) -> Self {
        Self {
            major: version.major,
            minor: version.minor,
        }
    }
}

/// Which struct a tensor is handed over in.
///
/// ```
/// use dlpack_core::Version;
/// use dlpack_core::request::{Abi, negotiate};
///
/// assert_eq!(negotiate(Some(Version::new(1, 0))), Abi::Versioned);
/// assert_eq!(negotiate(None), Abi::Legacy);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Abi {
    /// `DLManagedTensorVersioned`, DLPack 1.0 and later.
    Versioned,
    /// `DLManagedTensor`, which knows neither versions nor flags.
    Legacy,
}

/// The struct for a consumer that understands at most `requested`.
///
/// Nothing requested means a consumer from before versions; a lower major gets the legacy
/// struct; ours or anything newer gets ours.
///
/// ```
/// use dlpack_core::Version;
/// use dlpack_core::request::{Abi, negotiate};
///
/// assert_eq!(negotiate(Some(Version::new(2, 0))), Abi::Versioned);
/// assert_eq!(negotiate(Some(Version::new(0, 8))), Abi::Legacy);
/// ```
#[must_use]
pub const fn negotiate(requested: Option<Version>) -> Abi {
    match requested {
        Some(version) if version.major >= Version::CURRENT.major => Abi::Versioned,
        _ => Abi::Legacy,
    }
}
