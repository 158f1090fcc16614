//! Which key claims which role: the keys of a struct and its fields in source order, and the rules between two of them.

use proc_macro2::Ident;

use crate::syntax::attr::{Attr, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::Field;
use crate::syntax::role::Role;
use crate::syntax::ty::is_list;

/// A key, and the field that it is on.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) role: Role,
    pub(crate) key: &'a Ident,
    pub(crate) value: &'a Value,
    /// The field with the key; `None` for keys on the struct and inside of `tensor(..)`.
    pub(crate) field: Option<&'a Field<'a>>,
    place: usize,
}

pub(crate) struct Claims<'a>(Vec<Claim<'a>>);

impl<'a> Claims<'a> {
    pub(crate) fn new(attrs: &'a [Attr], fields: &'a [Field<'a>]) -> Self {
        let own = attrs.iter().map(|attr| (attr, None));
        let marks = fields
            .iter()
            .flat_map(|field| field.attrs.iter().map(move |attr| (attr, Some(field))));
        let claim = |(place, (attr, field)): (usize, (&'a Attr, _))| Claim {
            role: attr.role,
            key: &attr.key,
            value: &attr.value,
            field,
            place,
        };
        Self(own.chain(marks).enumerate().map(claim).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Claim<'a>> {
        self.0.iter()
    }

    /// The claims that fulfil a predicate.
    pub(crate) fn filter(&self, which: impl Fn(&Claim<'a>) -> bool) -> Self {
        Self(self.iter().copied().filter(|claim| which(claim)).collect())
    }

    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.iter().any(|claim| claim.role == role)
    }

    /// The claim of a role; reports all further ones.
    pub(crate) fn claim_of(&self, role: Role, cx: &Ctxt) -> Option<Claim<'a>> {
        self.claim_of_any(&[role], cx)
    }

    /// The first claim of any of these roles, which exclude each other, such as `data` and `unsafe(data ..)`; reports all
    /// further ones.
    pub(crate) fn claim_of_any(&self, roles: &[Role], cx: &Ctxt) -> Option<Claim<'a>> {
        let mut claims = self.iter().filter(|claim| roles.contains(&claim.role));
        let first = *claims.next()?;
        for later in claims {
            let name = roles[0].name();
            let message = match (first.field, later.field) {
                (Some(field), Some(_)) => format!(
                    "only one field can be `{name}`; `{}` already is",
                    field.name()
                ),
                (None, Some(_)) => format!("`{name}` is already set on the struct"),
                _ => format!("`{name}` is already set by `{}`", first.key),
            };
            cx.error(later.key, message);
        }
        Some(first)
    }

    /// The claim of one of two alternative roles; reports the later one if there are both.
    pub(crate) fn claim_of_either(
        &self,
        one: Role,
        other: Role,
        why: &str,
        cx: &Ctxt,
    ) -> Option<Claim<'a>> {
        let (one, other) = (self.claim_of(one, cx), self.claim_of(other, cx));
        report_exclusion(one, other, why, cx);
        one.or(other)
    }
}

/// Reports the later of two keys that exclude each other.
pub(crate) fn report_exclusion(
    one: Option<Claim<'_>>,
    other: Option<Claim<'_>>,
    why: &str,
    cx: &Ctxt,
) {
    if let (Some(one), Some(other)) = (one, other) {
        let (first, later) = if one.place < other.place {
            (one, other)
        } else {
            (other, one)
        };
        cx.error(
            later.key,
            format!(
                "`{}` excludes `{}`: {why}",
                first.role.name(),
                later.role.name()
            ),
        );
    }
}

/// Reports fields with two roles: a field is either the data or a part of the layout. An exception is a field that stores both
/// shape and strides.
pub(crate) fn one_role_each(fields: &[Field<'_>], cx: &Ctxt) {
    for field in fields {
        let mut first: Option<&Attr> = None;
        for attr in &field.attrs {
            match first {
                _ if matches!(attr.role, Role::ReadOnly | Role::Writable) => {}
                None => first = Some(attr),
                Some(first) if is_layout(first.role, attr.role) => {
                    if is_list(field.ty) {
                        let message = format!(
                            "a list is either `shape` or `strides`, and `{}` is already set here; a `Layout<N>` keeps both",
                            first.key
                        );
                        cx.error(&attr.key, message);
                    }
                }
                Some(first) if first.role.lays_out() || attr.role.lays_out() => {
                    let message =
                        format!("a field has one role; `{}` is already set here", first.key);
                    cx.error(&attr.key, message);
                }
                Some(_) => {}
            }
        }
    }
}

const fn is_layout(one: Role, other: Role) -> bool {
    matches!(
        (one, other),
        (Role::Shape, Role::Strides) | (Role::Strides, Role::Shape)
    )
}
