//! [`Parts`] from values of which any may be refused: what the derive builds on.
//!
//! A draft keeps the first refusal to itself until the end, so that an expansion needs no `?`. Each of those costs the
//! compiler a match, a conversion and a way out: together a fifth of the time that it spends on a derived struct.
//!
//! All of it is inlined, always: called as functions, these methods would move the parts through memory, and a
//! description would take three times as many instructions.

use crate::describe::descriptor::Descriptor;
use crate::describe::parts::Parts;
use crate::device::Device;
use crate::dtype::{DataType, Order};
use crate::element::Element;
use crate::error::Error;
use crate::layout::dims::Dims;
use crate::loan::{Loan, LoanMut};
use crate::stream::StreamRef;

/// Parts, or why there are none. The methods are those of [`Parts`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Draft<'a>(Result<Parts<'a>, Error>);

impl Default for Draft<'_> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $type:ty)?);)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(self $(, $value: $type)?) -> Self {
            Self(self.0.map(|parts| parts.$name($($value)?)))
        }
    )*};
}

macro_rules! fallible_methods {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(self, value: Result<$type, Error>) -> Self {
            Self(match (self.0, value) {
                (Ok(parts), Ok(value)) => Ok(parts.$name(value)),
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            })
        }
    )*};
}

impl<'a> Draft<'a> {
    /// Nothing said.
    #[inline(always)]
    pub const fn new() -> Self {
        Self(Ok(Parts::new()))
    }

    fallible_methods! {
        /// The extents.
        shape(Dims);
        /// The strides in elements.
        strides(Dims);
        /// The strides in bytes.
        byte_strides(Dims);
        /// The elements in front.
        offset(i64);
        /// The bytes in front.
        byte_offset(i64);
    }

    methods! {
        /// The first axis moves fastest.
        column_major();
        /// Which axis moves fastest.
        order(order: Order);
        /// What the bytes are read as, at run time.
        dtype(dtype: DataType);
        /// Where the memory lies.
        device(device: Device);
        /// The stream that it is written on.
        stream(stream: StreamRef<'a>);
        /// No consumer may write.
        read_only();
        /// A consumer has to be able to write.
        writable();
        /// Read-only data is refused to a legacy consumer.
        legacy_refuse();
        /// Device memory is freed without waiting.
        release_immediate();
    }

    /// What the bytes are read as.
    #[inline(always)]
    pub fn elem<E: Element>(self) -> Self {
        Self(self.0.map(Parts::elem::<E>))
    }

    /// The tensor over memory that is lent for reading.
    #[inline(always)]
    pub fn describe(self, loan: Loan<'a>) -> Result<Descriptor<'a>, Error> {
        self.0?.describe(loan)
    }

    /// The tensor over memory that is lent for writing.
    #[inline(always)]
    pub fn describe_mut(self, loan: LoanMut<'a>) -> Result<Descriptor<'a>, Error> {
        self.0?.describe_mut(loan)
    }
}
