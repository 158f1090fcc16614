//! Who may write to memory while it is lent.

use crate::Element;

/// Who may write while the memory is lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nobody.
    Read,
    /// The one who has the loan.
    Exclusive,
    /// Everybody, Rust code as `memory/atomic.rs` does.
    Shared,
    /// Others, in the same way, but not the one who has the loan.
    ReadShared,
}

impl Access {
    pub(crate) fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::ReadShared)
    }

    /// Whether others may be writing.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::ReadShared)
    }

    /// The same memory seen through a shared reference.
    pub(crate) fn through_shared(self) -> Self {
        match self {
            Self::Exclusive => Self::Read,
            other => other,
        }
    }

    /// The same memory, whose elements are `T`. The one place that decides what may be written where it lies: where not
    /// every byte is a value of `T`, as with `bool`, a consumer could leave one that is none for Rust code to read.
    pub(crate) fn over<T: Element>(self) -> Self {
        if T::ANY_BITS {
            self
        } else {
            self.for_reading()
        }
    }

    /// The same memory for somebody who may only look at it.
    pub(crate) fn for_reading(self) -> Self {
        if self.is_shared() {
            Self::ReadShared
        } else {
            Self::Read
        }
    }
}
