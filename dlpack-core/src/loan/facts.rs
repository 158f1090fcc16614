//! What the types of a struct say about its tensor before any value exists; read by `assert_exports!`.

use crate::{DataType, Element};

/// The part of a tensor that is known at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Facts {
    pub(crate) dtype: Option<DataType>,
    /// The axes in front of those of the element.
    leading: Option<usize>,
    trailing: usize,
    write: Write,
    host: bool,
}

/// Which exports may be written for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    None,
    /// And none can be: not every byte is a value of the element.
    Never,
    /// Those that own the data.
    Owned,
    /// Those, and no export through a shared reference.
    Alone,
    /// Those that share it as well.
    Shared,
}

impl Facts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        dtype: None,
        leading: None,
        trailing: 0,
        write: Write::None,
        host: false,
    };

    /// Memory of the processor; nothing else is known.
    pub const HOST: Self = Self {
        host: true,
        ..Self::UNKNOWN
    };

    /// What is known of a value that is one of these.
    pub const fn of_one(of: &[Self]) -> Self {
        let mut host = true;
        let mut at = 0;
        while at < of.len() {
            host &= of[at].host;
            at += 1;
        }
        Self {
            host,
            ..Self::UNKNOWN
        }
    }

    /// A list of `E` in memory of the processor, one axis and those of `E`.
    pub const fn list<E: Element>() -> Self {
        Self {
            dtype: Some(E::DTYPE),
            leading: Some(1),
            trailing: E::TRAILING.len(),
            write: if E::ANY_BITS {
                Write::None
            } else {
                Write::Never
            },
            host: true,
        }
    }

    /// As `write` says, unless none can be written.
    const fn write(self, write: Write) -> Self {
        match self.write {
            Write::Never => self,
            _ => Self { write, ..self },
        }
    }

    /// The list makes values of whatever bytes it finds.
    pub const fn any_bits(self) -> Self {
        Self {
            write: Write::None,
            ..self
        }
    }

    /// As many axes as the shape has.
    pub const fn rank(self, leading: Option<usize>) -> Self {
        Self { leading, ..self }
    }

    /// The bytes are read as the elements of that list.
    pub const fn elem(self, list: Self) -> Self {
        Self {
            dtype: list.dtype,
            trailing: list.trailing,
            ..self
        }
    }

    /// The data type is a value.
    pub const fn dynamic_dtype(self) -> Self {
        Self {
            dtype: None,
            trailing: 0,
            ..self
        }
    }

    /// The device is a value.
    pub const fn dynamic_device(self) -> Self {
        Self {
            host: false,
            ..self
        }
    }

    /// Whether the data is in memory of the processor for sure.
    #[must_use]
    pub const fn is_on_host(self) -> bool {
        self.host
    }

    /// No consumer may write.
    pub const fn read_only(self) -> Self {
        self.write(Write::None)
    }

    /// An export that owns the data may be written.
    pub const fn writable(self) -> Self {
        match self.write {
            Write::None => self.write(Write::Owned),
            _ => self,
        }
    }

    /// An export that owns the data may be written, and none through a shared reference.
    pub const fn writable_alone(self) -> Self {
        match self.write {
            Write::None => self.write(Write::Alone),
            _ => self,
        }
    }

    /// Whether it takes exclusive access for sure to export what may be written.
    #[must_use]
    pub const fn is_writable_alone(&self) -> bool {
        matches!(self.write, Write::Alone)
    }

    /// Any export may be written.
    pub const fn writable_shared(self) -> Self {
        self.write(Write::Shared)
    }

    /// The same through a shared reference.
    pub const fn shared(self) -> Self {
        match self.write {
            Write::Owned | Write::Alone => self.write(Write::None),
            _ => self,
        }
    }

    /// How many axes there are, if that is known.
    #[must_use]
    pub const fn axes(&self) -> Option<usize> {
        match self.leading {
            Some(leading) => Some(leading + self.trailing),
            None => None,
        }
    }

    /// Whether any export may be written for sure.
    pub(crate) const fn is_writable_shared(&self) -> bool {
        matches!(self.write, Write::Shared)
    }

    /// Whether the export may be written for sure: one that owns the data, but for tensors that are always shared.
    pub(crate) const fn is_writable(&self) -> bool {
        matches!(self.write, Write::Owned | Write::Alone | Write::Shared)
    }
}

/// Tensors under a name, and what is known of each.
pub type NamedFacts = &'static [(&'static str, Facts)];
