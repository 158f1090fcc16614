//! Named tensors (the key `tensor`): the data and the name of each.

use proc_macro2::{Ident, Span};
use syn::LitStr;
use syn::ext::IdentExt;
use syn::parse::Parser;

use super::{Named, Source, check_owner};
use crate::plan::claim::{Claim, Claims};
use crate::plan::tensor::{Data, Policy, Tensor, field_names};
use crate::syntax::attr::{Attr, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Field, Input, Member};
use crate::syntax::role::Role;
use crate::syntax::ty::option_inner;

pub(super) fn plan_tensors<'a>(
    input: &'a Input<'a>,
    claims: &Claims<'a>,
    fields: &'a [Field<'a>],
    policy: Policy,
    cx: &Ctxt,
) -> Vec<Named<'a>> {
    let names = field_names(fields);
    let mut found: Vec<Named<'a>> = Vec::new();
    for claim in claims.iter().filter(|claim| claim.role == Role::Tensor) {
        let keys: &'a [Attr] = match claim.value {
            Value::List(keys) => keys,
            _ => &[],
        };
        let Some((name, at)) = tensor_name(claim, keys, cx) else {
            continue;
        };
        if found.iter().any(|old| old.name == name) {
            cx.push(syn::Error::new(
                at,
                format!("tensor `{name}` is already defined; give each its own `name`"),
            ));
            continue;
        }
        let inner = Claims::new(keys, &[]);
        let data = match claim.field {
            Some(field) => Some(match option_inner(field.ty) {
                Some(ty) => Data::Present(field, ty),
                None => Data::Field(field),
            }),
            None => plan_data_of_struct_key(claim, &inner, &names, cx),
        };
        let Some(data) = data else { continue };
        let owner = inner.has_role(Role::Owner)
            || claim
                .field
                .is_some_and(|field| field.attr(Role::Owner).is_some());
        if let (Some(field), true) = (claim.field, owner) {
            check_owner(option_inner(field.ty).unwrap_or(field.ty), &inner, cx);
        }
        let set = inner.claim_of(Role::Set, cx).map(|claim| claim.key);
        if set.is_some() {
            check_settable(&inner, cx);
        }
        let describes_tensor = |key: &Attr| !matches!(key.role, Role::Name | Role::Set);
        let plain = !keys.iter().any(describes_tensor) && policy.is_default();
        let source = if plain && claim.field.is_some() && !owner {
            Source::Whole(data)
        } else {
            Source::Tensor(Box::new(Tensor::new(&inner, data, &names, policy, cx)))
        };
        found.push(Named {
            name,
            at,
            vis: claim.field.map_or(input.vis, |field| field.vis),
            doc: claim.field.and_then(|field| field.doc.as_deref()),
            source,
            owner,
            set,
        });
    }
    found
}

/// Reports keys that `set` excludes: an assignment fills the field with contiguous elements of the field's own type.
fn check_settable(keys: &Claims<'_>, cx: &Ctxt) {
    for claim in keys.iter() {
        let is_excluded = match claim.role {
            Role::Order => !matches!(claim.value, Value::Text(_)),
            Role::Elem => true,
            role => role.lays_out() && role != Role::Shape,
        };
        if is_excluded {
            let name = claim.role.name();
            let message = format!(
                "`set` fills the field with the elements of an array, one after another: remove `{name}`, or copy the array in a method of your own"
            );
            cx.error(claim.key, message);
        }
    }
}

/// The data of a key `tensor` on the struct, which has to name it.
fn plan_data_of_struct_key<'a>(
    claim: &Claim<'a>,
    inner: &Claims<'a>,
    names: &[&Ident],
    cx: &Ctxt,
) -> Option<Data<'a>> {
    match inner.claim_of_any(&[Role::Data, Role::Unsafe], cx) {
        Some(data) => Data::new(data, names, cx),
        None => {
            cx.error(
                claim.key,
                "a `tensor` on the struct needs its data: `tensor(name = \"..\", data = ..)`",
            );
            None
        }
    }
}

/// The name of a tensor, for its accessor in Rust and its attribute in Python.
fn tensor_name(claim: &Claim<'_>, keys: &[Attr], cx: &Ctxt) -> Option<(String, Span)> {
    let given = keys.iter().find_map(|key| match &key.value {
        Value::Text(text) if key.role == Role::Name => Some(text),
        _ => None,
    });
    match (given, claim.field.map(|field| (&field.member, field))) {
        (Some(text), _) => given_name(text, cx),
        (None, Some((Member::Named(ident), field))) => {
            check_accessor_name(field.name(), ident.span(), cx)
        }
        (None, Some((Member::Unnamed(_), _))) => {
            cx.error(
                claim.key,
                "a field without a name needs one here: `tensor(name = \"..\")`",
            );
            None
        }
        (None, None) => {
            cx.error(
                claim.key,
                "a `tensor` on the struct needs a name: `tensor(name = \"..\", data = ..)`",
            );
            None
        }
    }
}

fn given_name(text: &LitStr, cx: &Ctxt) -> Option<(String, Span)> {
    let name = text.value();
    let is_ident = Ident::parse_any
        .parse_str(&name)
        .is_ok_and(|ident| ident.unraw() == name && name != "_");
    if !is_ident {
        let message = format!(
            "{name:?} is not an attribute name: use letters, digits and `_`, such as `name = \"weights\"`"
        );
        cx.error(text, message);
        return None;
    }
    check_accessor_name(name, text.span(), cx)
}

/// Reports names with an accessor that would hide a method of the traits.
fn check_accessor_name(name: String, at: Span, cx: &Ctxt) -> Option<(String, Span)> {
    if name == "tensor" || name == "mut" {
        let message = format!(
            "a tensor cannot be called `{name}`: its accessor would hide `describe_{name}`; write `tensor(name = \"..\")`"
        );
        cx.push(syn::Error::new(at, message));
        return None;
    }
    Some((name, at))
}
