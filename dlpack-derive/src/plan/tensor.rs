//! One tensor: its data and its layout, each a field or an expression, and the rules between its keys.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Expr, ExprLit, Lit, Type};

use crate::plan::claim::{Claim, Claims, report_exclusion};
use crate::syntax::attr::{Attr, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::expr::{self, Entry};
use crate::syntax::input::{Field, Member};
use crate::syntax::role::Role;
use crate::syntax::scope::bind_and_check;
use crate::syntax::ty::{is_pointer, owned_container, peel_parentheses};

/// The data of a tensor.
pub(crate) enum Data<'a> {
    Field(&'a Field<'a>),
    /// A field of type `Option<ty>`.
    Present(&'a Field<'a>, &'a Type),
    Expr(TokenStream),
    Raw {
        token: &'a Ident,
        data: TokenStream,
        len: TokenStream,
    },
}

/// The source of one property of the layout.
pub(crate) enum Slot<'a> {
    Field(&'a Field<'a>),
    Expr(TokenStream),
    List(Vec<Entry>, Span),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As the type of the data allows.
    Natural,
    ReadOnly,
    Writable,
}

pub(crate) enum Order<'a> {
    ColumnMajor,
    By(Slot<'a>),
}

pub(crate) struct Tensor<'a> {
    pub(crate) data: Data<'a>,
    pub(crate) shape: Option<Slot<'a>>,
    pub(crate) strides: Option<(Role, Slot<'a>)>,
    pub(crate) order: Option<Order<'a>>,
    pub(crate) offset: Option<(Role, Slot<'a>)>,
    pub(crate) elem: Option<&'a Type>,
    pub(crate) dtype: Option<Slot<'a>>,
    pub(crate) device: Option<Slot<'a>>,
    pub(crate) stream: Option<Slot<'a>>,
    pub(crate) access: Access,
    pub(crate) policy: Policy,
}

/// The keys on a struct that apply to all of its tensors.
#[derive(Clone, Copy, Default)]
pub(crate) struct Policy {
    pub(crate) legacy_refuse: bool,
    pub(crate) release_immediate: bool,
}

impl Policy {
    pub(crate) fn of(claims: &Claims<'_>) -> Self {
        let says = |role, word: &str| {
            claims.iter().any(|claim| {
                claim.role == role
                    && matches!(claim.value, Value::Text(text) if text.value() == word)
            })
        };
        Self {
            legacy_refuse: says(Role::Legacy, "refuse"),
            release_immediate: says(Role::Release, "immediate"),
        }
    }

    pub(crate) const fn is_default(self) -> bool {
        !self.legacy_refuse && !self.release_immediate
    }
}

/// The field names that are in scope in expressions.
pub(crate) fn field_names<'a>(fields: &'a [Field<'a>]) -> Vec<&'a Ident> {
    let named = |field: &'a Field<'a>| match field.member {
        Member::Named(ident) => Some(ident),
        Member::Unnamed(_) => None,
    };
    fields.iter().filter_map(named).collect()
}

impl<'a> Data<'a> {
    /// From the key `data` or `unsafe(data = .., len = ..)`.
    pub(crate) fn new(claim: Claim<'a>, names: &[&Ident], cx: &Ctxt) -> Option<Self> {
        match (claim.field, claim.value) {
            (Some(field), _) => {
                if is_pointer(field.ty) {
                    let name = field.name();
                    let message = format!(
                        "a raw pointer says neither how long its data is nor who keeps it: \
                         write `unsafe(data = self.{name}, len = ..)` on the struct"
                    );
                    cx.error(field.ty, message);
                    return None;
                }
                Some(Self::Field(field))
            }
            (None, Value::Expr(tokens)) => {
                if expr::is_unborrowed_slice(tokens) {
                    cx.error(
                        tokens,
                        "`data` borrows its elements: put `&` before the slice",
                    );
                    return None;
                }
                Some(Self::Expr(bind_and_check(tokens, names, cx)))
            }
            (None, Value::List(parts)) => Self::from_unsafe_keys(claim.key, parts, names, cx),
            _ => None,
        }
    }

    fn from_unsafe_keys(
        token: &'a Ident,
        parts: &[Attr],
        names: &[&Ident],
        cx: &Ctxt,
    ) -> Option<Self> {
        let part = |role: Role| {
            let found = parts.iter().find(|part| part.role == role);
            let tokens = found.and_then(|part| match &part.value {
                Value::Expr(tokens) => Some(bind_and_check(tokens, names, cx)),
                _ => None,
            });
            if tokens.is_none() {
                // If one of the two keys is given, the error for the missing one points to it.
                let at = parts.first().map_or(token, |part| &part.key);
                let message = format!(
                    "missing `{}`: write `unsafe(data = .., len = ..)`",
                    role.name()
                );
                cx.error(at, message);
            }
            tokens
        };
        let data = part(Role::Data);
        if data.is_none() && parts.is_empty() {
            return None;
        }
        let len = part(Role::Len);
        Some(Self::Raw {
            token,
            data: data?,
            len: len?,
        })
    }

    /// The field that is the data, if it is one.
    pub(crate) const fn field(&self) -> Option<&'a Field<'a>> {
        match self {
            Self::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Whether the data's type certainly has no device that a stream could belong to.
    fn lacks_device(&self) -> bool {
        match self {
            Self::Field(field) => owned_container(field.ty).is_some(),
            Self::Present(_, ty) => owned_container(ty).is_some(),
            Self::Expr(tokens) => expr::is_slice(tokens),
            Self::Raw { .. } => true,
        }
    }
}

impl<'a> Tensor<'a> {
    pub(crate) fn new(
        claims: &Claims<'a>,
        data: Data<'a>,
        names: &[&Ident],
        policy: Policy,
        cx: &Ctxt,
    ) -> Self {
        let slot = |claim: Claim<'a>| read_slot(claim, names, cx);
        let same = "both say the same; keep one";
        let shape = claims.claim_of(Role::Shape, cx);
        let strides = claims.claim_of_either(Role::Strides, Role::ByteStrides, same, cx);
        let order = claims.claim_of(Role::Order, cx);
        let offset = claims.claim_of_either(Role::Offset, Role::ByteOffset, same, cx);
        let device = claims.claim_of(Role::Device, cx);
        let stream = claims.claim_of(Role::Stream, cx);
        let (elem, dtype) = (
            claims.claim_of(Role::Elem, cx),
            claims.claim_of(Role::Dtype, cx),
        );
        let (readonly, writable) = (
            claims.claim_of(Role::ReadOnly, cx),
            claims.claim_of(Role::Writable, cx),
        );
        report_exclusion(
            elem,
            dtype,
            "`elem` is known at compile time, `dtype` at run time; keep one",
            cx,
        );
        report_exclusion(order, strides, "both place the elements; keep one", cx);
        report_exclusion(readonly, writable, "a tensor is one of them; keep one", cx);
        if let (Some(writable), Data::Expr(_)) = (writable, &data) {
            let message =
                "`writable` needs a `data` field: an expression only lends a shared reference";
            cx.error(writable.key, message);
        }
        if let (Some(stream), None, true) = (stream, device, data.lacks_device()) {
            let message =
                "`stream` needs a `device` field: a stream handle is valid on its device only";
            cx.error(stream.key, message);
        }
        let shape = shape.and_then(slot);
        check_holes(shape.as_ref(), strides.is_some(), cx);
        let strides = strides.and_then(|claim| {
            let slot = slot(claim)?;
            check_rank(shape.as_ref(), &slot, claim, cx);
            Some((claim.role, slot))
        });
        Self {
            data,
            shape,
            strides,
            order: order.and_then(|claim| match claim.value {
                Value::Text(text) if text.value() == "C" => None,
                Value::Text(_) => Some(Order::ColumnMajor),
                _ => slot(claim).map(Order::By),
            }),
            offset: offset.and_then(|claim| Some((claim.role, slot(claim)?))),
            elem: elem.and_then(|claim| match claim.value {
                Value::Type(ty) => Some(&**ty),
                _ => None,
            }),
            dtype: dtype.and_then(slot),
            device: device.and_then(slot),
            stream: stream.and_then(slot),
            access: match (readonly, writable) {
                (Some(_), _) => Access::ReadOnly,
                (None, Some(_)) => Access::Writable,
                (None, None) => Access::Natural,
            },
            policy,
        }
    }
}

fn read_slot<'a>(claim: Claim<'a>, names: &[&Ident], cx: &Ctxt) -> Option<Slot<'a>> {
    if let Some(field) = claim.field {
        return Some(Slot::Field(field));
    }
    let Value::Expr(tokens) = claim.value else {
        return None;
    };
    let listable = matches!(claim.role, Role::Shape | Role::Strides | Role::ByteStrides);
    match expr::parse_list(tokens) {
        Ok(Some(entries)) if listable => {
            let bind = |entry| match entry {
                Entry::Expr(tokens) => Entry::Expr(bind_and_check(&tokens, names, cx)),
                hole @ Entry::Hole(_) => hole,
            };
            let span =
                expr::single_token(tokens).map_or_else(|| claim.key.span(), |group| group.span());
            Some(Slot::List(entries.into_iter().map(bind).collect(), span))
        }
        Err(error) => {
            cx.push(error);
            None
        }
        Ok(_) => Some(Slot::Expr(bind_and_check(tokens, names, cx))),
    }
}

fn check_holes(shape: Option<&Slot<'_>>, strided: bool, cx: &Ctxt) {
    let Some(Slot::List(entries, _)) = shape else {
        return;
    };
    let holes = entries.iter().filter_map(|entry| match entry {
        Entry::Hole(hole) => Some(hole),
        Entry::Expr(_) => None,
    });
    for (at, hole) in holes.enumerate() {
        if at > 0 {
            cx.error(
                hole,
                "only one extent can be `_`: the length of the data yields one number",
            );
        } else if strided {
            cx.error(hole, "with strides, write every size of the shape: `_` cannot be inferred from the length of the data");
        }
    }
}

/// Compares the ranks of shape and strides if one is a list and the other's length is visible. The core compares two fields
/// by their types.
fn check_rank(shape: Option<&Slot<'_>>, strides: &Slot<'_>, claim: Claim<'_>, cx: &Ctxt) {
    let Some(shape) = shape else { return };
    if !matches!((shape, strides), (Slot::List(..), _) | (_, Slot::List(..))) {
        return;
    }
    if let (Some(axes), Some(found)) = (shape.visible_rank(), strides.visible_rank()) {
        if axes != found {
            let name = claim.role.name();
            let at = match strides {
                Slot::List(_, span) => *span,
                _ => claim.key.span(),
            };
            let message = format!(
                "`{name}` and `shape` need one entry per axis: here are {found} strides and {axes} extents"
            );
            cx.push(syn::Error::new(at, message));
        }
    }
}

impl Slot<'_> {
    /// Whether an expression in it can leave the function around it with an error.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Expr(tokens) => expr::can_fail(tokens),
            Self::List(entries, _) => entries
                .iter()
                .any(|entry| matches!(entry, Entry::Expr(tokens) if expr::can_fail(tokens))),
        }
    }

    /// The number of axes, if the tokens show it.
    fn visible_rank(&self) -> Option<usize> {
        match self {
            Self::List(entries, _) => Some(entries.len()),
            Self::Field(field) => match peel_parentheses(field.ty) {
                Type::Array(array) => match &array.len {
                    Expr::Lit(ExprLit {
                        lit: Lit::Int(len), ..
                    }) => len.base10_parse().ok(),
                    _ => None,
                },
                Type::Tuple(tuple) => Some(tuple.elems.len()),
                _ => None,
            },
            Self::Expr(_) => None,
        }
    }
}
