//! The rules that `Element` and `Record` share: type parameters have bounds, and the fields of a struct have a guaranteed layout, in the order of its source.

use proc_macro2::Ident;
use syn::{DeriveInput, Generics};

use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Body, Field, Input, repr_words};
use crate::syntax::role::Role;

/// The fields of a struct, in the order of its guaranteed layout.
pub(crate) fn fields_in_order<'a>(
    input: &'a Input<'a>,
    item: &DeriveInput,
    cx: &Ctxt,
) -> Option<&'a [Field<'a>]> {
    let Body::Struct(fields) = &input.body else {
        return None;
    };
    let ident = input.ident;
    let words = repr_words(&item.attrs);
    let transparent = words.iter().any(|word| word == "transparent");
    if !transparent && !words.iter().any(|word| word == "C") {
        let message = format!(
            "`{ident}` needs `#[repr(C)]`: only then are its fields laid out in the order they are written"
        );
        cx.error(ident, message);
    }
    if fields.is_empty() {
        cx.error(
            ident,
            format!("`{ident}` has no fields: a tensor needs a field that holds its elements"),
        );
    }
    if let (true, [_, second, ..]) = (transparent, &fields[..]) {
        cx.error(
            second.ty,
            "with `repr(transparent)` there is one field: use `#[repr(C)]` for more",
        );
    }
    cx.check()?;
    Some(fields)
}

/// Reports type parameters without a bound.
pub(crate) fn check_bounds(input: &Input<'_>, item: &DeriveInput, cx: &Ctxt) {
    if input.attrs.iter().any(|attr| attr.role == Role::Bound) {
        return;
    }
    for ident in params_without_bounds(&item.generics) {
        let message = format!("`{ident}` needs a bound: write `{ident}: Element` here");
        cx.error(ident, message);
    }
}

/// The type parameters that certainly have no bound.
pub(crate) fn params_without_bounds(generics: &Generics) -> impl Iterator<Item = &Ident> {
    generics
        .type_params()
        .filter(|param| param.bounds.is_empty() && generics.where_clause.is_none())
        .map(|param| &param.ident)
}
