//! Tensors that are given by an expression: the keys `data =` and `via =`.
//!
//! The derive puts the expression into a method that returns an unnamed type. Facts about that type, such as the device of
//! its memory, are known at compile time without evaluating the expression.

use crate::export::{extras::ShareCall, finish::export_computed, hand_over::RawExport};
use crate::loan::{buffer::Lent, facts::Facts};
use crate::{DLPack, Descriptor, Error, ExportRequest, Parts};

/// A type with a tensor that an expression gives.
pub trait Expression {
    /// Evaluates the expression.
    fn evaluate(&self) -> Result<impl ExpressionValue<'_>, Error>;
}

/// The value of an expression that gives a tensor.
pub trait ExpressionValue<'a> {
    /// The facts that the type determines.
    const FACTS: Facts;

    /// Describes the tensor, with the layout in `parts`.
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error>;

    /// Exports a tensor that was computed for this export, with the policies in `parts`. The value of `data =` has to be described.
    fn export(
        self,
        _parts: Parts<'a>,
        _request: Option<&ExportRequest>,
        _call: &mut ShareCall,
    ) -> Option<RawExport>
    where
        Self: Sized,
    {
        unreachable!("only called for `via`")
    }
}

/// The value of `data =`. If `D` lends no elements, [`RejectedExpression::into_value`] takes the place of its method.
#[derive(Debug)]
pub struct DataExpression<D>(D);

/// Wraps the value of `data =`. Compiles only if it lends elements.
#[inline]
pub fn data_expression<'a, D: Lent<'a>>(data: D) -> DataExpression<D> {
    DataExpression(data)
}

impl<'a, D: Lent<'a>> DataExpression<D> {
    /// Returns `self`. This inherent method takes precedence over [`RejectedExpression::into_value`].
    #[inline]
    #[must_use]
    pub fn into_value(self) -> Self {
        self
    }
}

impl<'a, D: Lent<'a>> ExpressionValue<'a> for DataExpression<D> {
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
    note = "to export a copy of a slice, write `via = self.items[..].to_vec()`; to export it in place, `data = &self.items[..]`"
)]
pub trait Computed: DLPack + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DLPack + 'static> Computed for T {}

/// The value of `via =`. If `T` is no tensor, [`RejectedExpression::into_value`] takes the place of its method.
#[derive(Debug)]
pub struct ViaExpression<T>(T);

/// Wraps the value of `via =`, which the descriptor will own. Compiles only if it is an owned tensor.
#[inline]
pub fn via_expression<T: Computed>(tensor: T) -> ViaExpression<T> {
    ViaExpression(tensor)
}

impl<T: Computed> ViaExpression<T> {
    /// Returns `self`. This inherent method takes precedence over [`RejectedExpression::into_value`].
    #[inline]
    #[must_use]
    pub fn into_value(self) -> Self {
        self
    }
}

impl<'a, T: Computed> ExpressionValue<'a> for ViaExpression<T> {
    const FACTS: Facts = Facts::of_one(&[T::EXTRAS.facts]).computed();

    #[inline]
    fn describe(self, parts: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        parts.via(self.0)
    }

    #[inline]
    fn export(
        self,
        parts: Parts<'a>,
        request: Option<&ExportRequest>,
        call: &mut ShareCall,
    ) -> Option<RawExport> {
        let mut computed = self.0.into_dlpack();
        if request.is_none() && call.by_address {
            computed = match computed.map(RawExport::of_computed) {
                Ok(Ok(tensor)) => return Some(tensor),
                Ok(Err(tensor)) => Ok(tensor),
                Err(error) => Err(error),
            };
        }
        call.outcome = Some(computed.and_then(|tensor| export_computed(tensor, parts, request)));
        None
    }
}

/// The fallback for a value that `data_expression` or `via_expression` rejects. It keeps rustc from reporting the same mistake again.
pub trait RejectedExpression: Sized {
    /// Returns a value without facts.
    fn into_value(self) -> RejectedValue {
        RejectedValue
    }
}

impl<D> RejectedExpression for DataExpression<D> {}
impl<T> RejectedExpression for ViaExpression<T> {}

/// The value of a rejected expression. Code that uses it never compiles.
#[derive(Debug)]
pub struct RejectedValue;

impl<'a> ExpressionValue<'a> for RejectedValue {
    const FACTS: Facts = Facts::UNKNOWN;

    fn describe(self, _: Parts<'a>) -> Result<Descriptor<'a>, Error> {
        unreachable!("the value was refused, so this never compiled")
    }
}

/// The facts about the value of an expression. The expression is not evaluated.
pub const fn expression_facts<S: Expression>() -> Facts {
    const fn facts_of<'a, S, G: ExpressionValue<'a>>(_: fn(&'a S) -> Result<G, Error>) -> Facts {
        G::FACTS
    }

    facts_of(S::evaluate)
}

/// Evaluates the expression of `via` and exports its tensor, for `Extras::share`.
#[inline]
pub fn share_expression<'a, S: Expression>(
    value: &'a S,
    parts: Parts<'a>,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
) -> Option<RawExport> {
    match value.evaluate() {
        Ok(tensor) => tensor.export(parts, request, call),
        Err(error) => {
            call.outcome = Some(Err(error));
            None
        }
    }
}

/// Evaluates the expression and describes its tensor.
#[inline]
pub fn describe_expression<'a, S: Expression>(
    value: &'a S,
    parts: Parts<'a>,
) -> Result<Descriptor<'a>, Error> {
    value.evaluate()?.describe(parts)
}
