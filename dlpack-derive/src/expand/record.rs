//! `Record`: every field of a row is a strided column over many rows, and a row is an item of a structured array.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::DeriveInput;

use crate::expand::call::{Paths, binding_ident};
use crate::expand::inventory;
use crate::plan::row;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Field, Input, Member, repr_words};
use crate::syntax::role::Role;

/// With `stubs`, also the names of the columns, for `#[dlpack_pymethods]`.
pub(crate) fn derive_record(
    input: &Input<'_>,
    item: &DeriveInput,
    stubs: bool,
    cx: &Ctxt,
) -> Option<TokenStream> {
    let fields = row::fields_in_order(input, item, cx)?;
    let is_packed = repr_words(&item.attrs).iter().any(|word| word == "packed");
    let skipped = fields.iter().filter(|field| has_role(field, Role::Skip));
    for field in skipped.filter(|field| has_role(field, Role::Nested)) {
        let message =
            "`skip` and `nested` exclude each other: a skipped field has no type in Python";
        cx.error(field.ty, message);
    }
    let shown: Vec<_> = fields
        .iter()
        .filter(|field| !has_role(field, Role::Skip))
        .collect();
    for field in &shown {
        if let Member::Unnamed(_) = field.member {
            cx.error(
                field.ty,
                "a column needs a name: give the field one, or mark it `#[dlpack(skip)]`",
            );
        }
    }
    row::check_bounds(input, item, cx);
    if shown.is_empty() {
        let ident = input.ident;
        cx.error(
            ident,
            format!("every field of `{ident}` is skipped: leave one to be a column"),
        );
    }
    cx.check()?;
    // What is not aligned cannot be borrowed, so a packed record has no columns.
    let is_column = |field: &&Field<'_>| !is_packed && !has_role(field, Role::Nested);
    let columns: Vec<_> = shown.iter().copied().filter(is_column).collect();
    let paths = Paths::new(input);
    let is_value = shown.len() == fields.len();
    let mut tokens = implement_record(&paths, &shown, &columns, is_value);
    if is_value {
        tokens.extend(implement_nested(&paths, &shown, is_packed));
    }
    if stubs {
        tokens.extend(inventory::of_record(input.ident, &columns));
    }
    Some(tokens)
}

fn has_role(field: &Field<'_>, role: Role) -> bool {
    field.attr(role).is_some()
}

/// The impl of `Record`: the layout, and a column for each field that is not nested.
fn implement_record(
    paths: &Paths<'_>,
    shown: &[&Field<'_>],
    columns: &[&Field<'_>],
    is_value: bool,
) -> TokenStream {
    let Paths { input, c, k } = paths;
    let names: Vec<_> = columns.iter().map(|field| field.name()).collect();
    let arms = columns.iter().zip(&names).map(|(field, name)| {
        let (at, ty, member) = (field.at, field.ty, &field.member);
        let k = input.krate.private(at);
        let (rows, row) = (binding_ident("rows", at), binding_ident("row", at));
        let column =
            quote_spanned!(at=> #k::record_column::<Self, #ty>(#rows, |#row| &#row.#member));
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
    let layouts = shown.iter().map(|field| {
        let (at, ty, name, member) = (field.at, field.ty, field.name(), &field.member);
        let k = input.krate.private(at);
        // A type that cannot be this field is reported by another call, if there is one.
        let of = match (has_role(field, Role::Nested), is_value) {
            (true, true) => quote_spanned!(at=> #k::NestedField::<#ty>::TYPE),
            (true, false) => {
                quote_spanned!(at=> #k::FieldType::of_record(<#ty as #k::Nested>::NESTED))
            }
            (false, _) if columns.is_empty() => {
                quote_spanned!(at=> #k::FieldType::of_element::<#ty>())
            }
            (false, _) => quote_spanned!(at=> #k::ElementField::<#ty>::TYPE),
        };
        quote!(#k::FieldLayout::new::<#ty>(#name, #k::offset_of!(Self, #member), #of))
    });
    let here = Span::call_site();
    let (rows, name) = (binding_ident("rows", here), binding_ident("name", here));
    input.implement(
        quote!(#c::Record),
        quote! {
            const NAMES: &'static [&'static #k::Str] = &[#(#names),*];
            const LAYOUT: &'static #k::RecordLayout = {
                use #k::UnsaidField as _;
                &#k::RecordLayout::of::<Self>(&[#(#layouts),*])
            };
            const COLUMNS: #k::NamedFacts = { use #k::ProbeDefaults as _; &[#(#facts),*] };
            #docs
            fn column<'a>(#rows: &'a [Self], #name: &#k::Str) -> #k::Described<'a> {
                match #name {
                    #(#arms)*
                    _ => #k::unknown_tensor(#name, <Self as #c::Record>::NAMES),
                }
            }
        },
    )
}

/// The impls for a record without skipped fields: an array element that is read and written field by field.
fn implement_nested(paths: &Paths<'_>, fields: &[&Field<'_>], is_packed: bool) -> TokenStream {
    let Paths { input, c, k } = paths;
    let read = fields.iter().map(|field| {
        let (at, ty, member) = (field.at, field.ty, &field.member);
        let (k, from) = (input.krate.private(at), binding_ident("from", at));
        let offset = quote!(#k::offset_of!(Self, #member));
        if has_role(field, Role::Nested) {
            quote_spanned!(at=> #member: #from.read_record::<#ty>(#offset))
        } else {
            quote_spanned!(at=> #member: #k::ElementField::<#ty>::read(#from, #offset))
        }
    });
    let written = fields.iter().map(|field| {
        let (at, ty, member) = (field.at, field.ty, &field.member);
        let (k, to) = (input.krate.private(at), binding_ident("to", at));
        let value = if is_packed {
            quote_spanned!(at=> &{ self.#member })
        } else {
            quote_spanned!(at=> &self.#member)
        };
        let of = if has_role(field, Role::Nested) {
            quote_spanned!(at=> NestedField)
        } else {
            quote_spanned!(at=> ElementField)
        };
        quote_spanned!(at=> #k::#of::<#ty>::write(#to, #k::offset_of!(Self, #member), #value);)
    });
    let here = Span::call_site();
    let (from, to) = (binding_ident("from", here), binding_ident("to", here));
    let fields = quote!(<Self as #c::Record>::LAYOUT);
    let mut tokens = input.implement(
        quote!(#k::RecordValue),
        quote! {
            const FIELDS: &'static #k::RecordLayout = #fields;
            #[inline]
            fn read_fields(#from: &#k::FieldReader<'_>) -> Self {
                use #k::UnsaidField as _;
                Self { #(#read),* }
            }
            #[inline]
            fn write_fields(&self, #to: &mut #k::FieldWriter<'_>) {
                use #k::UnsaidField as _;
                #(#written)*
            }
        },
    );
    let access = quote!(type Access = #k::FieldAccess;);
    tokens.extend(input.implement(quote!(#k::ArrayElement), access));
    tokens
}
