//! Which code may write memory while it is lent.

use crate::Element;

/// Which code may write while the memory is lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// None.
    Read,
    /// Only the holder of the loan.
    Exclusive,
    /// Any code; Rust code only with the atomic accesses of `memory/atomic.rs`.
    Shared,
    /// Other code may write, as with [`Shared`](Self::Shared), but the holder of the loan may only read.
    ReadShared,
}

impl Access {
    pub(crate) fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::ReadShared)
    }

    /// Whether code other than the holder of the loan may write.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::ReadShared)
    }

    /// The access through a shared reference to the same memory.
    pub(crate) fn through_shared(self) -> Self {
        match self {
            Self::Exclusive => Self::Read,
            other => other,
        }
    }

    /// The access to elements of type `T`. If not every bit pattern is a valid `T`, as for `bool`, the memory becomes
    /// read-only: a consumer could write a byte that is invalid in Rust. Only this function decides that.
    pub(crate) fn for_elements<T: Element>(self) -> Self {
        if T::ANY_BITS {
            self
        } else {
            self.for_reading()
        }
    }

    /// The access for a holder that may only read.
    pub(crate) fn for_reading(self) -> Self {
        if self.is_shared() {
            Self::ReadShared
        } else {
            Self::Read
        }
    }
}
