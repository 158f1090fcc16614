//! A tensor that is an expression: `data =`, `via =`.
//!
//! The expression stands in a method of its own, whose result is of an unnamed type. So what that type says, as on which
//! device the memory is, is known without a value: nothing is borrowed for it, or computed.

use crate::loan::{buffer::Lent, facts::Facts};
use crate::{DLPack, Descriptor, Error, Parts};

/// A type whose tensor is an expression.
pub trait Expression {
    /// What the expression gives.
    fn value(&self) -> Result<impl Given<'_>, Error>;
}

/// What an expression gives.
pub trait Given<'a> {
    /// What the type alone says.
    const FACTS: Facts;

    /// The tensor that it is, as `parts` says.
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error>;
}

/// The value of `data =`; with [`Unfit`] in scope it is asked what it gives.
#[derive(Debug)]
pub struct Data<D>(D);

/// The data that an expression lends.
#[inline]
pub fn data_given<'a, D: Lent<'a>>(data: D) -> Data<D> {
    Data(data)
}

impl<'a, D: Lent<'a>> Data<D> {
    /// What it gives: itself.
    #[inline]
    #[must_use]
    pub fn given(self) -> Self {
        self
    }
}

impl<'a, D: Lent<'a>> Given<'a> for Data<D> {
    const FACTS: Facts = D::FACTS;

    #[inline]
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        parts.describe(self.0.loan())
    }
}

/// What the expression behind `via =` gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor that owns its elements",
    label = "expected an owned tensor, such as `Vec<T>`",
    note = "of a slice, give a copy: `via = self.items[..].to_vec()`; to lend it as it is, say `data = &self.items[..]`"
)]
pub trait Computed: DLPack + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DLPack + 'static> Computed for T {}

/// The value of `via =`, likewise.
#[derive(Debug)]
pub struct Via<T>(T);

/// A tensor that is computed on request: the descriptor owns it.
#[inline]
pub fn via<T: Computed>(tensor: T) -> Via<T> {
    Via(tensor)
}

impl<T: Computed> Via<T> {
    /// What it gives: itself.
    #[inline]
    #[must_use]
    pub fn given(self) -> Self {
        self
    }
}

impl<'a, T: Computed> Given<'a> for Via<T> {
    const FACTS: Facts = Facts::of_one(&[T::EXTRAS.facts]);

    #[inline]
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        parts.via(self.0)
    }
}

/// What a value gives that the calls above refused, so that one mistake is reported once.
pub trait Unfit: Sized {
    /// Nothing.
    fn given(self) -> Nothing {
        Nothing
    }
}

impl<D> Unfit for Data<D> {}
impl<T> Unfit for Via<T> {}

/// Nothing that was of use.
#[derive(Debug)]
pub struct Nothing;

impl<'a> Given<'a> for Nothing {
    const FACTS: Facts = Facts::UNKNOWN;

    fn describe(self, _: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        unreachable!("the value was refused, so this never compiled")
    }
}

/// What the expression of a type is known to give. It is not evaluated.
pub const fn facts_given<S: Expression>() -> Facts {
    const fn of<'a, S, G: Given<'a>>(_: fn(&'a S) -> Result<G, Error>) -> Facts {
        G::FACTS
    }

    of(S::value)
}

/// The tensor that the expression gives.
#[inline]
pub fn described_given<'a, S: Expression>(
    value: &'a S,
    parts: Parts<'a>,
) -> Result<Descriptor<'a>, Error> {
    value.value()?.describe(parts)
}
