//! `assert_exports!`: compares what a user asserts about an export with the facts of the type.

use core::marker::PhantomData;

use crate::loan::facts::{Facts, NamedFacts};
use crate::{DataType, Element};

/// The facts of a list of `E`. If `E` is no element, [`ProbeDefaults`](crate::private::ProbeDefaults) gives the facts, and
/// another call reports the error.
pub struct ElementOf<E>(PhantomData<E>);

impl<E: Element> ElementOf<E> {
    /// The facts of a list of these elements.
    pub const FACTS: Facts = Facts::list::<E>();
}

/// The assertion of `assert_exports!`.
#[derive(Debug)]
#[must_use]
pub struct ExportAssertion {
    ty: &'static str,
    elem: &'static str,
    dtype: DataType,
    rank: Option<usize>,
    writable: Option<bool>,
}

impl ExportAssertion {
    /// Returns the assertion that the type `ty` exports items of `E`.
    pub const fn new<E: Element>(ty: &'static str, elem: &'static str) -> Self {
        Self {
            ty,
            elem,
            dtype: E::DTYPE,
            rank: None,
            writable: None,
        }
    }

    /// Adds the number of axes to the assertion.
    pub const fn with_rank(mut self, rank: usize) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Adds to the assertion that every export may be written, or that none may.
    pub const fn with_writable(mut self, writable: bool) -> Self {
        self.writable = Some(writable);
        self
    }

    /// Compares the assertion with the tensor named `name`; a type that is a tensor itself has the empty name. Returns the
    /// error message, or an empty text if the assertion holds. `exclusive` is whether Python may write (key `writable`).
    pub const fn check_export(
        &self,
        name: &str,
        groups: &[NamedFacts],
        exclusive: bool,
    ) -> AssertionMessage {
        let mut known = AssertionMessage::EMPTY;
        let mut group = 0;
        while group < groups.len() {
            let mut at = 0;
            while at < groups[group].len() {
                let (found, facts) = &groups[group][at];
                if is_same_name(found, name) {
                    return self.check_facts(name, facts, exclusive);
                }
                known = known.push_all(&[if known.len == 0 { "`" } else { ", `" }, found, "`"]);
                at += 1;
            }
            group += 1;
        }
        let none = ["`", self.ty, "` has no tensor `", name, "`; it has "];
        AssertionMessage::EMPTY
            .push_all(&none)
            .push_all(&[known.as_str()])
    }

    const fn check_facts(&self, name: &str, facts: &Facts, exclusive: bool) -> AssertionMessage {
        let always = facts.is_writable_shared() || exclusive && facts.is_writable();
        let text = if name.is_empty() {
            AssertionMessage::EMPTY
        } else {
            AssertionMessage::EMPTY.push_all(&["`", name, "` of "])
        };
        let text = text.push_all(&["`", self.ty, "`"]);
        let text = match (facts.dtype, self.rank, facts.axes()) {
            (None, ..) => text.push_all(&[" has a data type that is only known at run time"]),
            (Some(found), ..) if !is_same_dtype(found, self.dtype) => {
                text.push_all(&[" does not export items of `", self.elem, "`"])
            }
            (_, Some(_), None) => text.push_all(&[" has a rank that is only known at run time"]),
            (_, Some(rank), Some(found)) if rank != found => text
                .push_all(&[" does not export a tensor of rank "])
                .push_number(rank),
            _ => match self.writable {
                Some(true) if !always && facts.is_writable() => text.push_all(&[
                    " is read-only in Python and wherever else it is shared: mark its data `#[dlpack(data, writable)]`",
                ]),
                Some(true) if !always => text.push_all(&[" does not export writable data"]),
                Some(false) if facts.is_writable() => text.push_all(&[
                    " exports writable data where it is owned: mark its data `#[dlpack(data, readonly)]`",
                ]),
                _ => return AssertionMessage::EMPTY,
            },
        };
        let text = text.push_all(&["; its types say: "]);
        let text = match facts.dtype {
            None => text.push_all(&["items of any type"]),
            Some(dtype) => text.push_dtype(dtype),
        };
        let text = match facts.axes() {
            None => text.push_all(&[", any rank"]),
            Some(axes) => text.push_all(&[", rank "]).push_number(axes),
        };
        text.push_all(&[match facts.is_writable() {
            true if always => ", writable",
            true => ", writable where it is owned",
            false => ", readonly",
        }])
    }
}

/// A message that is built at compile time. Text beyond its capacity is truncated.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct AssertionMessage {
    bytes: [u8; 512],
    len: usize,
}

impl AssertionMessage {
    const EMPTY: Self = Self {
        bytes: [0; 512],
        len: 0,
    };

    /// Whether the message is empty, so the assertion holds.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The message as a string.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.len);
        match core::str::from_utf8(text) {
            Ok(text) => text,
            // Truncation split a character.
            Err(_) => "the types say something else",
        }
    }

    const fn push_all(mut self, more: &[&str]) -> Self {
        let mut part = 0;
        while part < more.len() {
            let mut at = 0;
            while at < more[part].len() && self.len < self.bytes.len() {
                self.bytes[self.len] = more[part].as_bytes()[at];
                self.len += 1;
                at += 1;
            }
            part += 1;
        }
        self
    }

    const fn push_number(self, number: usize) -> Self {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let text = match number {
            ..10 => self,
            _ => self.push_number(number / 10),
        };
        text.push_all(&[DIGITS[number % 10]])
    }

    const fn push_dtype(self, dtype: DataType) -> Self {
        let text = match dtype.name() {
            Some(name) => self.push_all(&[name]),
            None => self.push_all(&["items of a type without a name"]),
        };
        let text = match dtype.lanes() {
            1 => text,
            lanes => text.push_all(&["x"]).push_number(lanes as usize),
        };
        match dtype.is_padded() {
            true => text.push_all(&[", one a byte"]),
            false => text,
        }
    }
}

const fn is_same_dtype(a: DataType, b: DataType) -> bool {
    a.code() == b.code()
        && a.bits() == b.bits()
        && a.lanes() == b.lanes()
        && a.is_padded() == b.is_padded()
}

/// Whether two names are equal.
pub(super) const fn is_same_name(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut byte = 0;
    while byte < a.len() && byte < b.len() && a[byte] == b[byte] {
        byte += 1;
    }
    byte == a.len() && byte == b.len()
}

/// Asserts at compile time what a type exports.
///
/// The asserted facts must be known from the types: the dtype of the items, the rank, and whether every export may be
/// written, also from Python (`writable`), or none (`readonly`). A `Vec` without either key satisfies neither:
/// [`into_dlpack`](crate::DLPack::into_dlpack) exports it writable, and Python gets it read-only.
///
/// ```
/// use dlpack_core::{DLPack, assert_exports};
///
/// #[derive(DLPack)]
/// struct Image {
///     #[dlpack(data, writable)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 3],
/// }
///
/// assert_exports!(Image: f32, rank 3, writable);
/// ```
///
/// For a type with several tensors, name the tensor. Such a tensor is always shared with the struct, so it is writable only
/// if its data may be written through a shared reference:
///
/// ```
/// use dlpack_core::{DLPack, assert_exports};
///
/// #[derive(DLPack)]
/// struct Batch {
///     #[dlpack(tensor)]
///     observations: Vec<[f32; 4]>,
///     #[dlpack(tensor)]
///     rewards: Vec<f64>,
/// }
///
/// assert_exports!(Batch, "observations": f32, rank 2);
/// assert_exports!(Batch, "rewards": f64, rank 1, readonly);
/// ```
///
/// The error message says what the type exports:
///
/// ```compile_fail
/// # use dlpack_core::{DLPack, assert_exports};
/// # #[derive(DLPack)]
/// # struct Image { #[dlpack(data)] pixels: Vec<f32>, #[dlpack(shape)] dims: [usize; 3] }
/// assert_exports!(Image: f64);
/// ```
#[macro_export]
macro_rules! assert_exports {
    (@claim $claim:expr, rank $rank:literal $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.with_rank($rank), $($($rest)*)?)
    };
    (@claim $claim:expr, writable $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.with_writable(true), $($($rest)*)?)
    };
    (@claim $claim:expr, readonly $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.with_writable(false), $($($rest)*)?)
    };
    (@claim $claim:expr, $(,)?) => { $claim };
    (@against $claim:expr, $type:ty) => {
        $claim.check_export(
            "",
            &[&[("", <$type as $crate::DLPack>::EXTRAS.facts)]],
            <$type as $crate::DLPack>::EXTRAS.exclusive,
        )
    };
    (@against $claim:expr, $type:ty, $name:literal) => {
        $claim.check_export($name, <$type as $crate::DLPackTensors>::FACTS, false)
    };
    ($type:ty $(, $name:literal)?: $elem:ty $(, $($rest:tt)*)?) => {
        const _: () = {
            const CLAIM: $crate::__private0::ExportAssertion = $crate::assert_exports!(
                @claim $crate::__private0::ExportAssertion::new::<$elem>(
                    ::core::stringify!($type),
                    ::core::stringify!($elem),
                ),
                $($($rest)*)?
            );
            const TEXT: $crate::__private0::AssertionMessage =
                $crate::assert_exports!(@against CLAIM, $type $(, $name)?);
            ::core::assert!(TEXT.is_empty(), "{}", TEXT.as_str());
        };
    };
}
