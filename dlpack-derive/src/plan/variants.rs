//! An enum: the field of each variant that is its tensor.

use super::Arm;
use crate::plan::claim::Claims;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Field, Input, Variant};
use crate::syntax::role::Role;

pub(super) fn plan_variants<'a>(
    input: &Input<'_>,
    variants: &'a [Variant<'a>],
    cx: &Ctxt,
) -> Vec<Arm<'a>> {
    let ident = input.ident;
    if variants.is_empty() {
        cx.error(
            ident,
            format!("`{ident}` has no variant that could hold a tensor"),
        );
    } else if variants.iter().all(|variant| !variant.attrs.is_empty()) {
        cx.error(
            ident,
            format!("every variant of `{ident}` is skipped: leave one that holds a tensor"),
        );
    }
    variants
        .iter()
        .map(|variant| Arm {
            variant,
            field: variant_field(variant, cx),
        })
        .collect()
}

fn variant_field<'a>(variant: &'a Variant<'a>, cx: &Ctxt) -> Option<&'a Field<'a>> {
    let ident = variant.ident;
    let claims = Claims::new(&[], &variant.fields);
    let marked = claims.claim_of(Role::Data, cx);
    // `skip` is the only attribute of a variant.
    if !variant.attrs.is_empty() {
        if let Some(marked) = marked {
            cx.error(
                marked.key,
                format!("variant `{ident}` is skipped: remove `data` here or `skip` there"),
            );
        }
        return None;
    }
    if let Some(marked) = marked {
        return marked.field;
    }
    match &variant.fields[..] {
        [only] => return Some(only),
        [] => cx.error(
            ident,
            format!(
                "variant `{ident}` has no field that holds a tensor: mark it `#[dlpack(skip)]`"
            ),
        ),
        _ => cx.error(
            ident,
            format!("missing `#[dlpack(data)]`: mark the field of `{ident}` that holds the tensor"),
        ),
    }
    None
}
