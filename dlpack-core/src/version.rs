//! DLPack versions, and the choice between the legacy and the versioned struct ([`negotiate`]).

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
    /// Incremented when the layout of the structs changes.
    pub major: u32,
    /// Incremented when values are added.
    pub minor: u32,
}

impl Version {
    /// The version that this crate implements, and the version of its exports.
    pub const CURRENT: Self = Self::new(abi::DLPACK_MAJOR_VERSION, abi::DLPACK_MINOR_VERSION);

    /// Returns the version with these numbers.
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

/// The C struct in which a tensor is exported.
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
    /// `DLManagedTensor`, which has neither a version nor flags.
    Legacy,
}

/// Returns the struct for a consumer that requests the version `requested`.
///
/// A consumer that requests no version predates DLPack 1.0 and gets the legacy struct. So does one that requests a lower
/// major version. A consumer that requests this major version or a newer one gets the versioned struct.
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
