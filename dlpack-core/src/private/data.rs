//! The loan that a field or an expression stands for, and who may keep it.

use crate::private::probe::{Route, RouteMut, RouteToWrite};
use crate::{Descriptor, Error, ExportRequest, Loan, LoanMut, Managed, loan::buffer::Lent};

/// The data of a field.
#[inline]
pub fn data<T: ?Sized, R: Route<T>>(field: &T, _: R) -> Loan<'_> {
    R::lend(field)
}

/// The data of a field, for writing where that can be.
#[inline]
pub fn data_mut<T: ?Sized, R: RouteMut<T>>(field: &mut T, _: R) -> LoanMut<'_> {
    R::lend_mut(field)
}

/// That a field can be written.
#[inline]
pub fn writable<T: ?Sized, R: RouteToWrite<T>>(_: R) {}

/// The data that an expression lends.
#[inline]
pub fn data_of<'a, D: Lent<'a>>(data: D) -> Loan<'a> {
    data.loan()
}

/// What a field marked `owner` is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `owner`",
    label = "an `owner` is a cheap handle: a clone of it keeps the same elements",
    note = "put it behind an `Arc`: `Arc<{Self}>`"
)]
pub trait Handle: Clone + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + 'static> Handle for T {}

/// What a clone of the field marked `owner` keeps, exported without the struct.
pub fn share<T: Handle, R: Route<T>>(
    field: &T,
    described: Result<Descriptor<'_>, Error>,
    request: &ExportRequest,
    _: R,
) -> Result<Managed, Error> {
    crate::export::ways::share_clone(field, R::lend, described?, request)
}
