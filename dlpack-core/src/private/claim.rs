//! `assert_exports!`: what somebody claims of a type, against what its types say.

use core::marker::PhantomData;

use crate::loan::facts::{Facts, NamedFacts};
use crate::{DataType, Element};

/// What is known of a type if it is an element; read where another call already complains that it is not.
pub struct Elem<E>(PhantomData<E>);

impl<E: Element> Elem<E> {
    /// What a list of them exports.
    pub const FACTS: Facts = Facts::list::<E>();
}

/// What `assert_exports!` states.
#[derive(Debug)]
#[must_use]
pub struct Claim {
    ty: &'static str,
    tensor: Option<&'static str>,
    elem: &'static str,
    dtype: DataType,
    rank: Option<usize>,
    writable: Option<bool>,
}

impl Claim {
    /// That a type exports such items.
    pub const fn new<E: Element>(ty: &'static str, elem: &'static str) -> Self {
        Self {
            ty,
            tensor: None,
            elem,
            dtype: E::DTYPE,
            rank: None,
            writable: None,
        }
    }

    /// That it does so under this name.
    pub const fn tensor(self, name: &'static str) -> Self {
        Self {
            tensor: Some(name),
            ..self
        }
    }

    /// That there are so many axes.
    pub const fn rank(self, rank: usize) -> Self {
        Self {
            rank: Some(rank),
            ..self
        }
    }

    /// That an export may be written.
    pub const fn writable(self) -> Self {
        Self {
            writable: Some(true),
            ..self
        }
    }

    /// That none may.
    pub const fn readonly(self) -> Self {
        Self {
            writable: Some(false),
            ..self
        }
    }

    /// Why the claim does not hold; empty where it does.
    pub const fn against(&self, facts: &Facts) -> Text {
        let text = self.subject();
        let text = match (facts.dtype, self.rank, facts.axes()) {
            (None, ..) => text.add(" has a data type that is only known at run time"),
            (Some(found), ..) if !same(found, self.dtype) => text
                .add(" does not export items of `")
                .add(self.elem)
                .add("`"),
            (_, Some(_), None) => text.add(" has a rank that is only known at run time"),
            (_, Some(rank), Some(found)) if rank != found => {
                text.add(" does not export a tensor of rank ").number(rank)
            }
            _ => match (self.writable, facts.is_writable()) {
                (Some(true), false) => text.add(" does not export writable data"),
                (Some(false), true) => text.add(" exports writable data"),
                _ => return Text::EMPTY,
            },
        };
        let text = text.add("; its types say: ");
        let text = match facts.dtype {
            None => text.add("items of any type"),
            Some(dtype) => text.dtype(dtype),
        };
        let text = match facts.axes() {
            None => text.add(", any rank"),
            Some(axes) => text.add(", rank ").number(axes),
        };
        text.add(if facts.is_writable() {
            ", writable"
        } else {
            ", readonly"
        })
    }

    /// The same of the tensor that the claim names.
    pub const fn against_named(&self, groups: &[NamedFacts]) -> Text {
        let Some(name) = self.tensor else {
            return Text::EMPTY;
        };
        let mut known = Text::EMPTY;
        let mut group = 0;
        while group < groups.len() {
            let mut at = 0;
            while at < groups[group].len() {
                let (found, facts) = &groups[group][at];
                if equal(found, name) {
                    return self.against(facts);
                }
                known = known
                    .add(if known.len == 0 { "`" } else { ", `" })
                    .add(found)
                    .add("`");
                at += 1;
            }
            group += 1;
        }
        let text = Text::EMPTY
            .add("`")
            .add(self.ty)
            .add("` has no tensor `")
            .add(name);
        text.add("`; it has ").add(known.as_str())
    }

    const fn subject(&self) -> Text {
        let text = Text::EMPTY;
        match self.tensor {
            Some(name) => text.add("`").add(name).add("` of `").add(self.ty).add("`"),
            None => text.add("`").add(self.ty).add("`"),
        }
    }
}

/// A message that is put together by the compiler; what does not fit is cut off.
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

    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The message.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.len);
        match core::str::from_utf8(text) {
            Ok(text) => text,
            // Cut in the middle of a letter.
            Err(_) => "the types say something else",
        }
    }

    const fn add(mut self, more: &str) -> Self {
        let more = more.as_bytes();
        let mut at = 0;
        while at < more.len() && self.len < self.bytes.len() {
            self.bytes[self.len] = more[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    const fn number(self, number: usize) -> Self {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let text = if number < 10 {
            self
        } else {
            self.number(number / 10)
        };
        text.add(DIGITS[number % 10])
    }

    const fn dtype(self, dtype: DataType) -> Self {
        let text = match dtype.name() {
            Some(name) => self.add(name),
            None => self.add("items of a type without a name"),
        };
        let text = match dtype.lanes() {
            1 => text,
            lanes => text.add("x").number(lanes as usize),
        };
        text.add(if dtype.is_padded() {
            ", one a byte"
        } else {
            ""
        })
    }
}

const fn same(a: DataType, b: DataType) -> bool {
    a.code() == b.code()
        && a.bits() == b.bits()
        && a.lanes() == b.lanes()
        && a.is_padded() == b.is_padded()
}

/// Whether two names are one.
pub(super) const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut byte = 0;
    while byte < a.len() {
        if a[byte] != b[byte] {
            return false;
        }
        byte += 1;
    }
    true
}

/// States what a type exports; the build fails where that is not so.
///
/// What is named has to be known from the types: the data type of the items, the rank, and whether
/// an export that owns the data may be written to (`writable`) or not (`readonly`).
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
/// A tensor among several is called by its name; it is always shared, and so it is writable only where the data may be
/// written through a shared reference:
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
/// The refusal says what is exported:
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
        $crate::assert_exports!(@claim $claim.writable(), $($($rest)*)?)
    };
    (@claim $claim:expr, readonly $(, $($rest:tt)*)?) => {
        $crate::assert_exports!(@claim $claim.readonly(), $($($rest)*)?)
    };
    (@claim $claim:expr, $(,)?) => { $claim };
    ($type:ty: $elem:ty $(, $($rest:tt)*)?) => {
        const _: () = {
            const TEXT: $crate::__private0::Text = $crate::assert_exports!(
                @claim $crate::__private0::Claim::new::<$elem>(
                    ::core::stringify!($type),
                    ::core::stringify!($elem),
                ),
                $($($rest)*)?
            )
            .against(&<$type as $crate::DLPack>::EXTRAS.facts);
            ::core::assert!(TEXT.is_empty(), "{}", TEXT.as_str());
        };
    };
    ($type:ty, $name:literal: $elem:ty $(, $($rest:tt)*)?) => {
        const _: () = {
            const TEXT: $crate::__private0::Text = $crate::assert_exports!(
                @claim $crate::__private0::Claim::new::<$elem>(
                    ::core::stringify!($type),
                    ::core::stringify!($elem),
                )
                .tensor($name),
                $($($rest)*)?
            )
            .against_named(<$type as $crate::DLPackTensors>::FACTS);
            ::core::assert!(TEXT.is_empty(), "{}", TEXT.as_str());
        };
    };
}
