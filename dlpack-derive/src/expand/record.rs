//! `Record`: every field of a row is a strided column over many rows.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::DeriveInput;

use crate::expand::{call::Paths, inventory};
use crate::plan::row;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Field, Input, Member};
use crate::syntax::role::Role;

/// With `stubs`, also the names of the columns, for `#[dlpack_pymethods]`.
pub(crate) fn derive(
    input: &Input<'_>,
    item: &DeriveInput,
    stubs: bool,
    cx: &Ctxt,
) -> Option<TokenStream> {
    let fields = row::fields(input, item, cx)?;
    let columns: Vec<_> = fields
        .iter()
        .filter(|field| field.attr(Role::Skip).is_none())
        .collect();
    for field in &columns {
        if let Member::Unnamed(_) = field.member {
            cx.error(
                field.ty,
                "a column needs a name: give the field one, or mark it `#[dlpack(skip)]`",
            );
        }
    }
    if columns.is_empty() {
        let ident = input.ident;
        cx.error(
            ident,
            format!("every field of `{ident}` is skipped: leave one to be a column"),
        );
    }
    cx.check()?;
    let mut tokens = expand(&Paths::new(input), &columns);
    if stubs {
        tokens.extend(inventory::of_record(input.ident, &columns));
    }
    Some(tokens)
}

fn expand(paths: &Paths<'_>, columns: &[&Field<'_>]) -> TokenStream {
    let Paths { input, c, k } = paths;
    let names: Vec<_> = columns.iter().map(|field| field.name()).collect();
    let arms = columns.iter().zip(&names).map(|(field, name)| {
        let (at, ty, member) = (field.at, field.ty, &field.member);
        let k = input.krate.private(at);
        let column = quote_spanned!(at=> #k::record_column::<Self, #ty>(rows, |row| &row.#member));
        quote!(#name => #column,)
    });
    let facts = columns.iter().zip(&names).map(|(field, name)| {
        let (k, ty) = (input.krate.private(field.at), field.ty);
        quote_spanned!(field.at=> (#name, #k::ElementOf::<#ty>::FACTS))
    });
    let docs = columns.iter().zip(&names).filter_map(|(field, name)| {
        let doc = field.doc.as_ref()?;
        Some(quote!((#name, #doc)))
    });
    let docs: Vec<_> = docs.collect();
    let docs = (!docs.is_empty()).then(|| quote!(const DOCS: #k::NamedDocs = &[#(#docs),*];));
    input.implement(
        quote!(#c::Record),
        quote! {
            const NAMES: &'static [&'static #k::Str] = &[#(#names),*];
            const COLUMNS: #k::NamedFacts = { use #k::ProbeDefaults as _; &[#(#facts),*] };
            #docs
            fn column<'a>(rows: &'a [Self], name: &#k::Str) -> #k::Described<'a> {
                match name {
                    #(#arms)*
                    _ => #k::unknown_tensor(name, <Self as #c::Record>::NAMES),
                }
            }
        },
    )
}
