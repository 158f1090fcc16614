//! Properties of a tensor that the types of a struct determine at compile time. `assert_exports!` reads them.

use crate::{DataType, Element};

/// The properties of a tensor that are known at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Facts {
    pub(crate) dtype: Option<DataType>,
    /// The number of axes before those of the element type.
    leading: Option<usize>,
    trailing: usize,
    write: WritableExports,
    host: bool,
    /// Whether the value has a shape and strides, which it lends with its memory.
    own_layout: bool,
    /// Whether the tensor may be computed for each export, instead of lent by the value.
    computed: bool,
}

/// Which exports are certain to be writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WritableExports {
    None,
    /// None, and none can be: not every bit pattern is a valid element.
    Never,
    /// Exports that own the data.
    Owned,
    /// Exports that own the data; exports through a shared reference are certain to be read-only.
    Alone,
    /// All exports, including shared ones.
    Shared,
}

impl Facts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        dtype: None,
        leading: None,
        trailing: 0,
        write: WritableExports::None,
        host: false,
        own_layout: false,
        computed: false,
    };

    /// The data is in host memory; nothing else is known.
    pub const HOST: Self = Self {
        host: true,
        ..Self::UNKNOWN
    };

    /// The facts that hold for each of several types: for a value that has one of them.
    pub const fn of_one(of: &[Self]) -> Self {
        let (mut host, mut computed) = (true, false);
        let mut at = 0;
        while at < of.len() {
            host &= of[at].host;
            computed |= of[at].computed;
            at += 1;
        }
        Self {
            host,
            computed,
            ..Self::UNKNOWN
        }
    }

    /// A list of `E` in host memory: one axis, followed by those of `E`.
    pub const fn list<E: Element>() -> Self {
        Self {
            dtype: Some(E::DTYPE),
            leading: Some(1),
            trailing: E::TRAILING.len(),
            write: if E::ANY_BITS {
                WritableExports::None
            } else {
                WritableExports::Never
            },
            host: true,
            own_layout: false,
            computed: false,
        }
    }

    /// Sets which exports are writable, unless the element type forbids writing.
    const fn with_write(self, write: WritableExports) -> Self {
        match self.write {
            WritableExports::Never => self,
            _ => Self { write, ..self },
        }
    }

    /// The list validates the bytes when it reads them, so the element type does not forbid writing.
    pub const fn any_bits(self) -> Self {
        Self {
            write: WritableExports::None,
            ..self
        }
    }

    /// The value lends a shape and strides with its memory; the shape has `leading` axes.
    pub const fn with_layout(self, leading: Option<usize>) -> Self {
        Self {
            own_layout: true,
            ..self.rank(leading)
        }
    }

    pub(crate) const fn has_own_layout(&self) -> bool {
        self.own_layout
    }

    /// The number of axes before those of the element type comes from the shape.
    pub const fn rank(self, leading: Option<usize>) -> Self {
        Self { leading, ..self }
    }

    /// The bytes are read as the elements of `list`.
    pub const fn elem(self, list: Self) -> Self {
        Self {
            dtype: list.dtype,
            trailing: list.trailing,
            ..self
        }
    }

    /// The data type is known only at run time.
    pub const fn dynamic_dtype(self) -> Self {
        Self {
            dtype: None,
            trailing: 0,
            ..self
        }
    }

    /// The device is known only at run time.
    pub const fn dynamic_device(self) -> Self {
        Self {
            host: false,
            ..self
        }
    }

    /// The tensor is computed for each export.
    pub const fn computed(self) -> Self {
        Self {
            computed: true,
            ..self
        }
    }

    /// The data type, if it is the same for all values.
    #[must_use]
    pub const fn dtype(self) -> Option<DataType> {
        self.dtype
    }

    /// Whether the data is certain to be in host memory.
    #[must_use]
    pub const fn is_on_host(self) -> bool {
        self.host
    }

    /// Whether the value is certain to lend host memory, so that an export computes, copies and orders nothing.
    #[must_use]
    pub const fn lends_host_memory(self) -> bool {
        self.host && !self.computed
    }

    /// Consumers must not write.
    pub const fn read_only(self) -> Self {
        self.with_write(WritableExports::None)
    }

    /// An export that owns the data is writable.
    pub const fn writable(self) -> Self {
        match self.write {
            WritableExports::None => self.with_write(WritableExports::Owned),
            _ => self,
        }
    }

    /// An export that owns the data is writable, and one through a shared reference is read-only.
    pub const fn writable_alone(self) -> Self {
        match self.write {
            WritableExports::None => self.with_write(WritableExports::Alone),
            _ => self,
        }
    }

    /// Whether a writable export is certain to need exclusive access.
    #[must_use]
    pub const fn is_writable_alone(&self) -> bool {
        matches!(self.write, WritableExports::Alone)
    }

    /// Every export is writable.
    pub const fn writable_shared(self) -> Self {
        self.with_write(WritableExports::Shared)
    }

    /// The facts for an export through a shared reference.
    pub const fn shared(self) -> Self {
        match self.write {
            WritableExports::Owned | WritableExports::Alone => {
                self.with_write(WritableExports::None)
            }
            _ => self,
        }
    }

    /// The total number of axes, if it is known.
    #[must_use]
    pub const fn axes(&self) -> Option<usize> {
        match self.leading {
            Some(leading) => Some(leading + self.trailing),
            None => None,
        }
    }

    /// Whether every export is certain to be writable.
    pub(crate) const fn is_writable_shared(&self) -> bool {
        matches!(self.write, WritableExports::Shared)
    }

    /// Whether an export that owns the data is certain to be writable. For tensors that are always shared, a shared export.
    pub(crate) const fn is_writable(&self) -> bool {
        matches!(
            self.write,
            WritableExports::Owned | WritableExports::Alone | WritableExports::Shared
        )
    }
}

/// The facts of several tensors, by name.
pub type NamedFacts = &'static [(&'static str, Facts)];

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler evaluates these functions in constants; here they run.
    #[test]
    fn facts_of_one_of_several_types_hold_for_each() {
        let [host, device] = [Facts::HOST, Facts::UNKNOWN];
        let computed = host.computed();
        for (of, is_on_host, is_computed) in [
            (&[host][..], true, false),
            (&[host, host], true, false),
            (&[host, device], false, false),
            (&[device, host], false, false),
            (&[host, computed, host], true, true),
            (&[device, computed], false, true),
        ] {
            let facts = Facts::of_one(of);
            assert_eq!(
                (facts.is_on_host(), facts.computed),
                (is_on_host, is_computed)
            );
            assert_eq!(facts.lends_host_memory(), is_on_host && !is_computed);
            assert_eq!(facts.dtype(), None);
        }
    }

    #[test]
    fn a_list_with_a_layout_keeps_its_other_facts() {
        let list = Facts::list::<f32>();
        assert!(!list.has_own_layout());
        assert_eq!(list.dtype(), Some(DataType::F32));
        let laid_out = list.with_layout(Some(3));
        assert!(laid_out.has_own_layout() && laid_out.is_on_host());
        assert_eq!(
            (laid_out.dtype(), laid_out.leading),
            (Some(DataType::F32), Some(3))
        );
        assert_eq!(list.dynamic_dtype().dtype(), None);
    }
}
