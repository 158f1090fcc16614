//! What an expression may give that lends elements: a reference to a buffer, or a loan.

use crate::loan::{Loan, buffer::Buffer};

/// What the expression behind `data =` may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not lend elements",
    label = "expected `&[T]`, or a reference to a buffer such as `&Vec<T>`",
    note = "borrow a slice: `data = &self.field[..]`"
)]
pub trait Lent<'a> {
    /// The loan.
    fn loan(self) -> Loan<'a>;
}

impl<'a, B: Buffer + ?Sized> Lent<'a> for &'a B {
    #[inline]
    fn loan(self) -> Loan<'a> {
        self.lend()
    }
}

impl<'a> Lent<'a> for Loan<'a> {
    #[inline]
    fn loan(self) -> Loan<'a> {
        self
    }
}
