//! `assert_exports!`: compares what a user asserts about an export with the facts of the type.

use core::marker::PhantomData;

use crate::loan::facts::{Facts, NamedFacts};
use crate::{DataType, Element};

/// The facts of a list of `E`. [`Unsaid::FACTS`](crate::private::Unsaid::FACTS) replaces them if `E` is no element, because
/// another call reports that error.
pub struct Elem<E>(PhantomData<E>);

impl<E: Element> Elem<E> {
    /// The facts of a list of these elements.
    pub const FACTS: Facts = Facts::list::<E>();
}

/// The assertion of `assert_exports!`.
#[derive(Debug)]
#[must_use]
pub struct Claim {
    ty: &'static str,
    elem: &'static str,
    dtype: DataType,
    rank: Option<usize>,
    writable: Option<bool>,
}

impl Claim {
    /// Asserts that the type `ty` exports items of `E`.
    pub const fn new<E: Element>(ty: &'static str, elem: &'static str) -> Self {
        Self {
            ty,
            elem,
            dtype: E::DTYPE,
            rank: None,
            writable: None,
        }
    }

    /// Asserts the number of axes.
    pub const fn rank(mut self, rank: usize) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Asserts that every export may be written, or that none may.
    pub const fn writable(mut self, writable: bool) -> Self {
        self.writable = Some(writable);
        self
    }

    /// Compares the assertion with the tensor named `name`; a type that is a tensor itself has the empty name. Returns the
    /// error message, or an empty text if the assertion holds. `exclusive` is whether Python may write (key `writable`).
    pub const fn against(&self, name: &str, groups: &[NamedFacts], exclusive: bool) -> Text {
        let mut known = Text::EMPTY;
        let mut group = 0;
        while group < groups.len() {
            let mut at = 0;
            while at < groups[group].len() {
                let (found, facts) = &groups[group][at];
                if equal(found, name) {
                    return self.against_facts(name, facts, exclusive);
                }
                known = known.add(&[if known.len == 0 { "`" } else { ", `" }, found, "`"]);
                at += 1;
            }
            group += 1;
        }
        let none = ["`", self.ty, "` has no tensor `", name, "`; it has "];
        Text::EMPTY.add(&none).add(&[known.as_str()])
    }

    const fn against_facts(&self, name: &str, facts: &Facts, exclusive: bool) -> Text {
        let always = facts.is_writable_shared() || exclusive && facts.is_writable();
        let text = if name.is_empty() {
            Text::EMPTY
        } else {
            Text::EMPTY.add(&["`", name, "` of "])
        };
        let text = text.add(&["`", self.ty, "`"]);
        let text = match (facts.dtype, self.rank, facts.axes()) {
            (None, ..) => text.add(&[" has a data type that is only known at run time"]),
            (Some(found), ..) if !same(found, self.dtype) => {
                text.add(&[" does not export items of `", self.elem, "`"])
            }
            (_, Some(_), None) => text.add(&[" has a rank that is only known at run time"]),
            (_, Some(rank), Some(found)) if rank != found => text
                .add(&[" does not export a tensor of rank "])
                .number(rank),
            _ => match self.writable {
                Some(true) if !always && facts.is_writable() => text.add(&[
                    " is read-only in Python and wherever else it is shared: mark its data `#[dlpack(data, writable)]`",
                ]),
                Some(true) if !always => text.add(&[" does not export writable data"]),
                Some(false) if facts.is_writable() => text.add(&[
                    " exports writable data where it is owned: mark its data `#[dlpack(data, readonly)]`",
                ]),
                _ => return Text::EMPTY,
            },
        };
        let text = text.add(&["; its types say: "]);
        let text = match facts.dtype {
            None => text.add(&["items of any type"]),
            Some(dtype) => text.dtype(dtype),
        };
        let text = match facts.axes() {
            None => text.add(&[", any rank"]),
            Some(axes) => text.add(&[", rank "]).number(axes),
        };
        text.add(&[match facts.is_writable() {
            true if always => ", writable",
            true => ", writable where it is owned",
            false => ", readonly",
        }])
    }
}

/// A message that is built at compile time. Text beyond the capacity is truncated.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Text {
    bytes: [u8; 512],
    len: usize,
}

impl Text {
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

    const fn add(mut self, more: &[&str]) -> Self {
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

    const fn number(self, number: usize) -> Self {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let text = match number {
            ..10 => self,
            _ => self.number(number / 10),
        };
        text.add(&[DIGITS[number % 10]])
    }

    const fn dtype(self, dtype: DataType) -> Self {
        let text = match dtype.name() {
            Some(name) => self.add(&[name]),
            None => self.add(&["items of a type without a name"]),
        };
        let text = match dtype.lanes() {
            1 => text,
            lanes => text.add(&["x"]).number(lanes as usize),
        };
        match dtype.is_padded() {
            true => text.add(&[", one a byte"]),
            false => text,
        }
    }
}

const fn same(a: DataType, b: DataType) -> bool {
    a.code() == b.code()
        && a.bits() == b.bits()
        && a.lanes() == b.lanes()
        && a.is_padded() == b.is_padded()
}

/// Whether two names are equal.
pub(super) const fn equal(a: &str, b: &str) -> bool {
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
        $crate::assert_exports!(@claim $claim.rank($rank), $($($rest)*)?)
    };
    (@claim $claim:expr, writable $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.writable(true), $($($rest)*)?)
    };
    (@claim $claim:expr, readonly $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.writable(false), $($($rest)*)?)
    };
    (@claim $claim:expr, $(,)?) => { $claim };
    (@against $claim:expr, $type:ty) => {
        $claim.against(
            "",
            &[&[("", <$type as $crate::DLPack>::EXTRAS.facts)]],
            <$type as $crate::DLPack>::EXTRAS.exclusive,
        )
    };
    (@against $claim:expr, $type:ty, $name:literal) => {
        $claim.against($name, <$type as $crate::DLPackTensors>::FACTS, false)
    };
    ($type:ty $(, $name:literal)?: $elem:ty $(, $($rest:tt)*)?) => {
        const _: () = {
            const CLAIM: $crate::__private0::Claim = $crate::assert_exports!(
                @claim $crate::__private0::Claim::new::<$elem>(
                    ::core::stringify!($type),
                    ::core::stringify!($elem),
                ),
                $($($rest)*)?
            );
            const TEXT: $crate::__private0::Text =
                $crate::assert_exports!(@against CLAIM, $type $(, $name)?);
            ::core::assert!(TEXT.is_empty(), "{}", TEXT.as_str());
        };
    };
}
