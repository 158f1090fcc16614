//! Generates `Element`: a struct with fields of one scalar type, which become a trailing axis.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Type};

use crate::expand::call::{Paths, binding_ident};
use crate::plan::row;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::expr::receiver_ident;
use crate::syntax::input::{Field, Input, repr_words};
use crate::syntax::krate::location_of;
use crate::syntax::ty::{peel_parentheses, scalar_name};

pub(crate) fn expand_element(
    input: &Input<'_>,
    item: &DeriveInput,
    cx: &Ctxt,
) -> Option<TokenStream> {
    let fields = row::fields_in_order(input, item, cx)?;
    check_one_scalar(fields, cx);
    let words = repr_words(&item.attrs);
    if let Some(align) = words.iter().find(|word| *word == "align") {
        cx.error(
            align,
            "`align` may add padding, which no tensor can describe: remove it",
        );
    }
    row::check_bounds(input, item, cx);
    cx.check()?;
    let transparent = words.iter().any(|word| word == "transparent");
    Some(element_impls(&Paths::new(input), fields, transparent))
}

/// Reports scalar types that differ by their tokens; the core compares the types themselves.
fn check_one_scalar(fields: &[Field<'_>], cx: &Ctxt) {
    let mut scalars = fields
        .iter()
        .filter_map(|field| Some((field, innermost_scalar(field.ty)?)));
    let Some((first, one)) = scalars.next() else {
        return;
    };
    for (field, other) in scalars.filter(|(_, other)| *other != one) {
        let message = format!(
            "an element has one scalar type: `{}` is `{other}`, `{}` is `{one}`; \
             for mixed fields use `#[derive(Record)]` and `columns`",
            field.name(),
            first.name(),
        );
        cx.error(field.ty, message);
    }
}

/// The scalar type of a field or of an array's elements.
fn innermost_scalar(ty: &Type) -> Option<&Ident> {
    match peel_parentheses(ty) {
        Type::Array(array) => innermost_scalar(&array.elem),
        ty => scalar_name(ty),
    }
}

/// The core's handle for a field, with the span of the field's type.
fn field_part(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let (own, ty) = (field.ty.span(), field.ty);
    let k = paths.k(own);
    quote_spanned!(own=> #k::describe_element_field::<Self, #ty>())
}

fn element_impls(paths: &Paths<'_>, fields: &[Field<'_>], transparent: bool) -> TokenStream {
    let Paths { input, k, .. } = paths;
    // The items that depend on the first field's scalar type have the span of that type.
    let own = fields
        .first()
        .map_or_else(Span::call_site, |field| field.ty.span());
    let first = fields.first().map(|field| {
        let ty = field.ty;
        let root = input.krate.root(own);
        quote_spanned!(own=> type Scalar = <#ty as #root::Element>::Scalar;)
    });
    let axes = fields.iter().map(|field| {
        let (own, part) = (field.ty.span(), field_part(paths, field));
        let k = paths.k(own);
        quote_spanned!(own=> #k::FieldDescription::axes(&#part))
    });
    let axes = if transparent {
        quote!(#(#axes)*)
    } else {
        quote!(#k::Axes::of_fields(&[#(#axes),*]))
    };
    let walk = |exclusive: bool| -> TokenStream {
        let step = |field: &Field<'_>| {
            let (at, member) = (field.at, &field.member);
            let (this, part) = (receiver_ident(at), field_part(paths, field));
            let mutable = exclusive.then(|| quote_spanned!(at=> mut));
            // Separate statements, as rustc reports an error in a method chain at its start.
            let walk = binding_ident("walk", at);
            quote_spanned!(at=> let #walk = #walk.field(&#mutable #this.#member, #part);)
        };
        fields.iter().map(step).collect()
    };
    let (shared, exclusive) = (walk(false), walk(true));
    let built = fields.iter().map(|field| {
        let (at, member) = (field.at, &field.member);
        let (part, source) = (field_part(paths, field), binding_ident("source", at));
        quote_spanned!(at=> #member: #source.next(#part))
    });
    let own_k = paths.k(own);
    let (this, walk, source) = (
        receiver_ident(own),
        binding_ident("walk", own),
        binding_ident("source", own),
    );
    let methods = quote_spanned! {own=>
        #[inline]
        fn walk_fields<'fields>(&'fields #this, #walk: #own_k::WalkOf<'fields, Self>) -> #own_k::WalkOf<'fields, Self> {
            #shared
            #walk
        }
        #[inline]
        fn walk_fields_mut<'fields>(&'fields mut #this, #walk: #own_k::WalkMutOf<'fields, Self>) -> #own_k::WalkMutOf<'fields, Self> {
            #exclusive
            #walk
        }
        #[inline]
        fn build_from(#source: &mut #own_k::SourceOf<'_, Self>) -> Self {
            Self { #(#built),* }
        }
    };
    let mut tokens = input.implement(
        quote!(#k::Homogeneous),
        quote! {
            #first
            const TRAILING: #k::Axes = #axes;
            #methods
        },
    );
    // The size of a generic struct is only known where it is used.
    if input.generics.params.is_empty() {
        let (at, ident) = (location_of(input.ident), input.ident);
        let k = input.krate.private(at);
        tokens.extend(
            quote_spanned!(at=> #[allow(deprecated)] const _: () = #k::no_padding::<#ident>();),
        );
    }
    tokens
}
