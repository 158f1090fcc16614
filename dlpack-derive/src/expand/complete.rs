//! Completion of keys in editors: repeats the user's keys as imports.
//!
//! rust-analyzer completes an import from the items of its module, and maps the tokens back to the user's attribute. So each
//! key becomes
//!
//! ```text
//! use ::dlpack_core::__private::keys::on_field::readonly as _;
//! ```
//!
//! The imports are in the first item of an expansion, because rust-analyzer stops at the first token with the same span, and
//! compile errors have such tokens too. They are generated for rust-analyzer only: compilers would take a few percent longer
//! for an additional item for each class.

use std::sync::OnceLock;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput};

use crate::syntax::input::Derive;
use crate::syntax::krate::Krate;
use crate::syntax::role::{Form, Role, Site};
use crate::syntax::root::Root;

/// Prepends the imports of `keys` to an expansion, if rust-analyzer expands it.
pub(crate) fn prepend_imports(
    keys: impl FnOnce() -> TokenStream,
    expanded: TokenStream,
) -> TokenStream {
    if !is_rust_analyzer() {
        return expanded;
    }
    let mut all = keys();
    all.extend(expanded);
    all
}

/// Whether rust-analyzer runs the macro, by the name of its executable.
fn is_rust_analyzer() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_stem());
        name.is_some_and(|name| name.to_string_lossy().starts_with("rust-analyzer"))
    })
}

/// The imports for the keys of a derive.
pub(crate) fn derive_imports(derive: Derive, root: Root, item: &DeriveInput) -> TokenStream {
    let is_row = matches!(derive, Derive::Element | Derive::Record);
    let mut found = Vec::new();
    let mut read = |attrs: &[Attribute], site| {
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("dlpack")) {
            if let syn::Meta::List(list) = &attr.meta {
                collect_keys(list.tokens.clone(), site, &mut found);
            }
        }
    };
    let fields = match &item.data {
        Data::Struct(data) => {
            let (own, field) = if is_row {
                (Site::Row, Site::RowField)
            } else {
                (Site::Struct, Site::Field)
            };
            read(&item.attrs, own);
            data.fields.iter().map(|of| (of, field)).collect()
        }
        Data::Enum(data) => {
            read(&item.attrs, Site::Enum);
            let mut fields = Vec::new();
            for variant in &data.variants {
                read(&variant.attrs, Site::Variant);
                fields.extend(variant.fields.iter().map(|of| (of, Site::VariantField)));
            }
            fields
        }
        Data::Union(_) => Vec::new(),
    };
    for (field, site) in fields {
        read(&field.attrs, site);
    }
    expand_imports(root, &found)
}

/// The imports for the options of `#[dlpack_pymethods]`.
pub(crate) fn option_imports(options: TokenStream) -> TokenStream {
    let mut found = Vec::new();
    collect_keys(options, Site::Methods, &mut found);
    expand_imports(Root::Pyo3, &found)
}

/// Collects the keys of a list, and of the lists in it.
fn collect_keys(tokens: TokenStream, site: Site, found: &mut Vec<(Site, Vec<Ident>)>) {
    let trees: Vec<_> = tokens.into_iter().collect();
    let is_comma =
        |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ',');
    let mut names = Vec::new();
    for item in trees.split(is_comma) {
        let [TokenTree::Ident(name), rest @ ..] = item else {
            continue;
        };
        if let [TokenTree::Group(list), ..] = rest {
            let form = Role::named(&name.unraw().to_string()).and_then(|role| role.form(site));
            if let (Delimiter::Parenthesis, Some(Form::List(of) | Form::FlagOrList(of))) =
                (list.delimiter(), form)
            {
                collect_keys(list.stream(), of, found);
            }
        }
        // A Rust keyword cannot be imported.
        if syn::parse2::<Ident>(quote!(#name)).is_ok() {
            names.push(name.clone());
        }
    }
    found.push((site, names));
}

fn expand_imports(root: Root, found: &[(Site, Vec<Ident>)]) -> TokenStream {
    if found.iter().all(|(_, names)| names.is_empty()) {
        return TokenStream::new();
    }
    let krate = Krate::of(&[], root);
    let k = krate.private(Span::call_site());
    let uses = found.iter().map(|(site, names)| {
        let of = format_ident!("{}", keys_module(*site));
        quote!(#(use #k::keys::#of::#names as _;)*)
    });
    quote! {
        const _: () = { #(#uses)* };
    }
}

/// The core's module with the keys of a site.
pub(crate) const fn keys_module(site: Site) -> &'static str {
    match site {
        Site::Struct => "on_struct",
        Site::Field => "on_field",
        Site::Enum => "on_enum",
        Site::Variant => "on_variant",
        Site::VariantField => "on_variant_field",
        Site::FieldTensor => "of_field_tensor",
        Site::FreeTensor => "of_free_tensor",
        Site::Raw => "of_unsafe",
        Site::Row => "on_row",
        Site::RowField => "on_row_field",
        Site::Methods => "of_pymethods",
    }
}
