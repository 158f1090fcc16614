//! From the parsed attributes to what is generated: all rules that concern more than one attribute, field or variant.
//!
//! ```text
//! Input ──[ claims ]──┬── the tensor ────────┐
//!                     ├── named tensors ─────┼── Plan
//!                     └── variants, columns ─┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | decides what kind of tensor an item is |
//! | `claim` | which field or attribute claims which role, and the rules between two claims |
//! | `tensor` | one tensor: its data and its layout |
//! | `tensors` | named tensors: their names and their data |
//! | `variants` | an enum: the field of each variant |
//! | `visible` | rejects types whose tokens show that they do not fit |
//! | `row` | the requirements that `Element` and `Record` share |

pub(crate) mod claim;
pub(crate) mod row;
pub(crate) mod tensor;
mod tensors;
mod variants;
mod visible;

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Type, Visibility};

use crate::plan::claim::{Claim, Claims, one_role_each};
use crate::plan::tensor::{Data, Policy, Tensor, field_names};
use crate::syntax::attr::Value;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Body, Field, Input, Variant};
use crate::syntax::role::Role;
use crate::syntax::scope::bind_and_check;
use crate::syntax::ty::owned_container;

pub(crate) struct Plan<'a> {
    pub(crate) main: Main<'a>,
    pub(crate) tensors: Vec<Named<'a>>,
    pub(crate) columns: Vec<&'a Field<'a>>,
}

/// The tensor that is the value itself.
pub(crate) enum Main<'a> {
    /// The value has tensors but is not a tensor.
    None,
    Tensor {
        tensor: Box<Tensor<'a>>,
        owner: Option<&'a Field<'a>>,
    },
    /// A field is the tensor: the only one, or the one with `data` if no other key describes the tensor.
    Whole(&'a Field<'a>, FieldKind),
    /// The field of the current variant is the tensor.
    Variants(Vec<Arm<'a>>),
    Via(TokenStream, Policy),
}

/// What is known about a field that is the tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// The only field, without keys.
    Lone,
    /// The field with the key `data`.
    Data,
}

pub(crate) struct Arm<'a> {
    pub(crate) variant: &'a Variant<'a>,
    /// `None` for a skipped variant.
    pub(crate) field: Option<&'a Field<'a>>,
}

pub(crate) struct Named<'a> {
    pub(crate) name: String,
    pub(crate) at: Span,
    pub(crate) vis: &'a Visibility,
    pub(crate) doc: Option<&'a str>,
    pub(crate) source: Source<'a>,
    /// Exports keep a clone of the field alive instead of the struct.
    pub(crate) owner: bool,
    /// Python code may assign an array to the field.
    pub(crate) set: Option<&'a Ident>,
}

pub(crate) enum Source<'a> {
    /// A field without further keys, which may be any tensor; the type inside of the `Option`, if it is one.
    Whole(Data<'a>),
    Tensor(Box<Tensor<'a>>),
}

impl<'a> Plan<'a> {
    pub(crate) fn new(input: &'a Input<'a>, cx: &Ctxt) -> Option<Self> {
        match &input.body {
            Body::Struct(fields) => plan_struct(input, fields, cx),
            Body::Enum(variants) => Some(Self {
                main: Main::Variants(variants::plan_variants(input, variants, cx)),
                tensors: Vec::new(),
                columns: Vec::new(),
            }),
        }
    }
}

fn plan_struct<'a>(input: &'a Input<'a>, fields: &'a [Field<'a>], cx: &Ctxt) -> Option<Plan<'a>> {
    let claims = Claims::new(&input.attrs, fields);
    one_role_each(fields, cx);
    let policy = Policy::of(&claims);
    let tensors = tensors::plan_tensors(input, &claims, fields, policy, cx);
    let columns: Vec<_> = claims
        .iter()
        .filter(|claim| claim.role == Role::Columns)
        .collect();
    if let Some(claim) = columns.first() {
        let alone = columns.len() == 1 && tensors.is_empty();
        if !alone && input.generics.params.iter().next().is_some() {
            let message = "the names of `columns` and other tensors cannot be joined in a generic struct: \
                           move the `columns` field to a struct of its own";
            cx.error(claim.key, message);
        }
    }
    // If a field has two roles, it is unknown which tensor its keys belong to.
    cx.check()?;
    let main = main(input, &claims, fields, policy, cx)?;
    Some(Plan {
        main,
        tensors,
        columns: columns.iter().filter_map(|claim| claim.field).collect(),
    })
}

/// Keys that do not describe the main tensor.
const fn is_apart(role: Role) -> bool {
    matches!(
        role,
        Role::Crate | Role::Bound | Role::Tensor | Role::Columns | Role::Legacy | Role::Release
    )
}

fn main<'a>(
    input: &'a Input<'a>,
    claims: &Claims<'a>,
    fields: &'a [Field<'a>],
    policy: Policy,
    cx: &Ctxt,
) -> Option<Main<'a>> {
    let names = field_names(fields);
    if let Some(via) = claims.claim_of(Role::Via, cx) {
        for other in claims
            .iter()
            .filter(|claim| !is_apart(claim.role) && claim.role != Role::Via)
        {
            let name = other.role.name();
            cx.error(
                other.key,
                format!(
                    "`via` returns a complete tensor: `{name}` has no effect on it, remove one"
                ),
            );
        }
        let Value::Expr(tokens) = via.value else {
            return None;
        };
        return Some(Main::Via(bind_and_check(tokens, &names, cx), policy));
    }
    let data = match claims.claim_of_any(&[Role::Data, Role::Unsafe], cx) {
        Some(claim) => Data::new(claim, &names, cx)?,
        None => match find_implied(input, claims, fields, cx)? {
            Implied::Nothing => return Some(Main::None),
            Implied::Whole(field) => return Some(Main::Whole(field, FieldKind::Lone)),
            Implied::Data(field) => Data::Field(field),
        },
    };
    let stray = claims.iter().filter(|claim| {
        matches!(claim.role, Role::ReadOnly | Role::Writable)
            && claim
                .field
                .is_some_and(|field| !data.field().is_some_and(|data| core::ptr::eq(data, field)))
    });
    for claim in stray {
        stray_access(claim, cx);
    }
    cx.check()?;
    if let Data::Field(field) = data {
        if field.attr(Role::Data).is_some() && claims.iter().all(|claim| keeps_whole(claim, field))
        {
            return Some(Main::Whole(field, FieldKind::Data));
        }
    }
    let of_main = claims.filter(|claim| !(claim.role == Role::Owner && is_of_tensor(claim.field)));
    let owner = of_main.claim_of(Role::Owner, cx).and_then(|claim| {
        check_owner(claim.field?.ty, claims, cx);
        claim.field
    });
    let tensor = Box::new(Tensor::new(claims, data, &names, policy, cx));
    Some(Main::Tensor { tensor, owner })
}

/// Whether a key does not describe the tensor of this field any further.
fn keeps_whole(claim: &Claim<'_>, data: &Field<'_>) -> bool {
    match claim.role {
        Role::Data | Role::Crate | Role::Bound | Role::Columns => true,
        Role::Tensor => claim.field.is_none_or(|field| !core::ptr::eq(field, data)),
        _ => false,
    }
}

fn stray_access(claim: &Claim<'_>, cx: &Ctxt) {
    let name = claim.role.name();
    let beside_tensor = claim
        .field
        .is_some_and(|field| field.attr(Role::Tensor).is_some());
    let hint = if beside_tensor && claim.role == Role::ReadOnly {
        "; for a tensor write `tensor(readonly)`"
    } else {
        ""
    };
    cx.error(
        claim.key,
        format!("`{name}` only applies to the `data` field{hint}"),
    );
}

/// Whether `owner` on a field belongs to an additional tensor only: next to `tensor`, unless `tensor(..)` has the key itself.
fn is_of_tensor(field: Option<&Field<'_>>) -> bool {
    field.is_some_and(|field| {
        field.attr(Role::Data).is_none()
            && field.attrs.iter().any(|attr| attr.role == Role::Tensor)
            && !field.attrs.iter().any(|attr| match &attr.value {
                Value::List(keys) => keys.iter().any(|key| key.role == Role::Owner),
                _ => false,
            })
    })
}

/// Rejects types of an `owner` that are expensive to clone, and a `stream` on its tensor.
fn check_owner(ty: &Type, claims: &Claims<'_>, cx: &Ctxt) {
    if let Some(stream) = claims.iter().find(|claim| claim.role == Role::Stream) {
        let message = "`stream` excludes `owner`: an export keeps the owner alone, and the stream may be gone before it; remove `owner`, or let the owner's `Buffer` name the stream with `Loan::with_stream`";
        cx.error(stream.key, message);
    }
    if let Some(container) = owned_container(ty) {
        let container = if container == "array" {
            "an array".to_owned()
        } else {
            format!("a `{container}`")
        };
        let message = format!(
            "cloning {container} copies its elements: an `owner` is a cheap handle such as `Arc<..>`"
        );
        cx.error(ty, message);
    }
}

/// What a struct without `data` is.
enum Implied<'a> {
    Nothing,
    Whole(&'a Field<'a>),
    Data(&'a Field<'a>),
}

fn find_implied<'a>(
    input: &Input<'_>,
    claims: &Claims<'a>,
    fields: &'a [Field<'a>],
    cx: &Ctxt,
) -> Option<Implied<'a>> {
    if claims.has_role(Role::Tensor) || claims.has_role(Role::Columns) {
        for claim in claims.iter().filter(|claim| !is_apart(claim.role)) {
            match claim.field {
                Some(_) if matches!(claim.role, Role::ReadOnly | Role::Writable) => {
                    stray_access(claim, cx)
                }
                field if claim.role == Role::Owner => {
                    if !is_of_tensor(field) {
                        let message =
                            "`owner` belongs to the field of a tensor: write `tensor(owner)` there";
                        cx.error(claim.key, message);
                    }
                }
                _ => {
                    let name = claim.role.name();
                    cx.error(claim.key, format!("`{name}` needs a `data` field: inside `tensor(..)` it applies to that tensor"));
                }
            }
        }
        return Some(Implied::Nothing);
    }
    let ident = input.ident;
    match fields {
        [only] if only.attrs.iter().all(|attr| !attr.role.lays_out()) => {
            let plain = claims
                .iter()
                .all(|claim| matches!(claim.role, Role::Crate | Role::Bound));
            Some(if plain {
                Implied::Whole(only)
            } else {
                Implied::Data(only)
            })
        }
        [] => {
            let message = format!(
                "`{ident}` has no field that holds the elements: write `#[dlpack(data = ..)]` or `#[dlpack(via = ..)]`"
            );
            cx.error(ident, message);
            None
        }
        _ => {
            let access = claims.iter().find(|claim| {
                claim.field.is_some() && matches!(claim.role, Role::ReadOnly | Role::Writable)
            });
            match access {
                // Most likely `data` is missing on this field, so only this error is reported.
                Some(claim) => stray_access(claim, cx),
                None => {
                    let message = format!(
                        "missing `#[dlpack(data)]`: mark the field of `{ident}` that holds the elements"
                    );
                    cx.error(ident, message);
                }
            }
            None
        }
    }
}
