//! `Element`: a struct of one scalar type is a trailing axis of its fields.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Type};

use crate::call::Paths;
use crate::ctxt::Ctxt;
use crate::expr::receiver;
use crate::input::{Field, Input, repr};
use crate::krate::site;
use crate::row;
use crate::ty::peel;

pub(crate) fn derive(input: &Input<'_>, item: &DeriveInput, cx: &Ctxt) -> Option<TokenStream> {
    let fields = row::fields(input, item, cx)?;
    one_scalar(fields, cx);
    let words = repr(&item.attrs);
    if let Some(align) = words.iter().find(|word| *word == "align") {
        cx.error(
            align,
            "`align` may add padding, which no tensor can describe: remove it",
        );
    }
    cx.check()?;
    let transparent = words.iter().any(|word| word == "transparent");
    Some(expand(&Paths::new(input), fields, transparent))
}

/// Scalars that differ visibly; core compares the others by their types.
fn one_scalar(fields: &[Field<'_>], cx: &Ctxt) {
    let mut scalars = fields
        .iter()
        .filter_map(|field| Some((field, scalar(field.ty)?)));
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

fn scalar(ty: &Type) -> Option<&Ident> {
    const SCALARS: [&str; 14] = [
        "bool", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
        "u64", "u128",
    ];
    match peel(ty) {
        Type::Array(array) => scalar(&array.elem),
        Type::Path(path) => {
            let ident = path.path.get_ident()?;
            (SCALARS.iter().any(|name| ident == name) || ident == "usize").then_some(ident)
        }
        _ => None,
    }
}

fn expand(paths: &Paths<'_>, fields: &[Field<'_>], transparent: bool) -> TokenStream {
    let Paths { input, c, k } = paths;
    let first = fields.first().map(|field| field.ty);
    let axes = fields.iter().map(|field| {
        let (at, ty) = (site(field.ty), field.ty);
        let root = input.krate.root(at);
        quote_spanned!(at=> <#ty as #root::Element>::TRAILING)
    });
    let axes = if transparent {
        quote!(#(#axes)*)
    } else {
        quote!(#k::Axes::of_fields(&[#(#axes),*]))
    };
    let walk = |exclusive: bool| -> TokenStream {
        let step = |field: &Field<'_>| {
            let (at, ty, member) = (site(field.ty), field.ty, &field.member);
            let this = receiver(at);
            let mutable = exclusive.then(|| quote_spanned!(at=> mut));
            // One statement each: rustc blames the start of a chain for its end.
            quote_spanned!(at=> let walk = walk.field::<#ty>(&#mutable #this.#member);)
        };
        fields.iter().map(step).collect()
    };
    let (shared, exclusive) = (walk(false), walk(true));
    let built = fields.iter().map(|field| {
        let (at, ty, member) = (site(field.ty), field.ty, &field.member);
        quote_spanned!(at=> #member: source.next::<#ty>())
    });
    let scalar = quote!(<Self as #k::Homogeneous>::Scalar);
    let mut tokens = input.implement(
        quote!(#k::Homogeneous),
        quote! {
            type Scalar = <#first as #c::Element>::Scalar;
            const TRAILING: #k::Axes = #axes;
            fn walk<'a>(&'a self, walk: #k::Walk<'a, #scalar>) -> #k::Walk<'a, #scalar> {
                #shared
                walk
            }
            fn walk_mut<'a>(&'a mut self, walk: #k::WalkMut<'a, #scalar>) -> #k::WalkMut<'a, #scalar> {
                #exclusive
                walk
            }
            fn build(source: &mut #k::Source<'_, #scalar>) -> Self {
                Self { #(#built),* }
            }
        },
    );
    // The sizes of a generic struct are known only where it is used.
    if input.generics.params.is_empty() {
        let (at, ident) = (site(input.ident), input.ident);
        let k = input.krate.private(at);
        tokens.extend(
            quote_spanned!(at=> #[allow(deprecated)] const _: () = #k::no_padding::<#ident>();),
        );
    }
    tokens
}
