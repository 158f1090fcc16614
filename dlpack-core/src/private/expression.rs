//! Tensors that are given by an expression: the keys `data =` and `via =`.
//!
//! The derive puts the expression into a method that returns an unnamed type. Facts about that type, such as the device of
//! its memory, are known at compile time without evaluating the expression.

use crate::loan::{buffer::Lent, facts::Facts};
use crate::{DLPack, Descriptor, Error, Parts};

/// A type whose tensor is given by an expression.
pub trait Expression {
    /// Evaluates the expression.
    fn value(&self) -> Result<impl Given<'_>, Error>;
}

/// The value of an expression that gives a tensor.
pub trait Given<'a> {
    /// The facts that the type determines.
    const FACTS: Facts;

    /// Describes the tensor, with the layout in `parts`.
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error>;
}

/// The value of `data =`. Its method `given` returns it; [`Unfit::given`] replaces that method if its bound fails.
#[derive(Debug)]
pub struct Data<D>(D);

/// Wraps the value of `data =`. Compiles only if it lends elements.
#[inline]
pub fn data_given<'a, D: Lent<'a>>(data: D) -> Data<D> {
    Data(data)
}

impl<'a, D: Lent<'a>> Data<D> {
    /// Returns `self`. This inherent method takes precedence over [`Unfit::given`].
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

/// The bound of the expression in `via = ..`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor that owns its elements",
    label = "expected an owned tensor, such as `Vec<T>`",
    note = "of a slice, give a copy: `via = self.items[..].to_vec()`; to lend it as it is, say `data = &self.items[..]`"
)]
pub trait Computed: DLPack + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DLPack + 'static> Computed for T {}

/// The value of `via =`. Its method `given` returns it; [`Unfit::given`] replaces that method if its bound fails.
#[derive(Debug)]
pub struct Via<T>(T);

/// Wraps the value of `via =`, which the descriptor will own. Compiles only if it is an owned tensor.
#[inline]
pub fn via<T: Computed>(tensor: T) -> Via<T> {
    Via(tensor)
}

impl<T: Computed> Via<T> {
    /// Returns `self`. This inherent method takes precedence over [`Unfit::given`].
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

/// The fallback for a value that `data_given` or `via` rejects. It keeps rustc from reporting the same mistake again.
pub trait Unfit: Sized {
    /// Returns a value without facts.
    fn given(self) -> Nothing {
        Nothing
    }
}

impl<D> Unfit for Data<D> {}
impl<T> Unfit for Via<T> {}

/// The value of a rejected expression. Code that uses it never compiles.
#[derive(Debug)]
pub struct Nothing;

impl<'a> Given<'a> for Nothing {
    const FACTS: Facts = Facts::UNKNOWN;

    fn describe(self, _: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        unreachable!("the value was refused, so this never compiled")
    }
}

/// The facts about the value of an expression. The expression is not evaluated.
pub const fn facts_given<S: Expression>() -> Facts {
    const fn of<'a, S, G: Given<'a>>(_: fn(&'a S) -> Result<G, Error>) -> Facts {
        G::FACTS
    }

    of(S::value)
}

/// Evaluates the expression and describes its tensor.
#[inline]
pub fn described_given<'a, S: Expression>(
    value: &'a S,
    parts: Parts<'a>,
) -> Result<Descriptor<'a>, Error> {
    value.value()?.describe(parts)
}
