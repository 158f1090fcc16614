//! The parsed item: its fields or variants, each with its keys, borrowed from syn's tree.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Fields, Generics, Index, LitStr, Meta, Token, Type, Visibility,
    WherePredicate, parse_quote,
};

use crate::syntax::attr::{self, Attr, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::krate::{Krate, location_of};
use crate::syntax::role::{Role, Site};
use crate::syntax::root::Root;

/// The derive that reads the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derive {
    DLPack,
    FromDLPack,
    Element,
    Record,
}

pub(crate) struct Input<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    /// With the predicates of the key `bound`.
    pub(crate) generics: Generics,
    pub(crate) krate: Krate,
    pub(crate) attrs: Vec<Attr>,
    pub(crate) body: Body<'a>,
}

pub(crate) enum Body<'a> {
    Struct(Vec<Field<'a>>),
    Enum(Vec<Variant<'a>>),
}

pub(crate) struct Field<'a> {
    pub(crate) member: Member<'a>,
    pub(crate) vis: &'a Visibility,
    pub(crate) ty: &'a Type,
    /// The location of the type, with the hygiene of the expansion.
    pub(crate) at: Span,
    pub(crate) attrs: Vec<Attr>,
    /// The text of its doc comment.
    pub(crate) doc: Option<String>,
}

/// The name or index of a field; unlike syn's, an index has the span of the field's type.
pub(crate) enum Member<'a> {
    Named(&'a Ident),
    Unnamed(Index),
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) is_unit: bool,
    pub(crate) attrs: Vec<Attr>,
}

impl Derive {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DLPack => "DLPack",
            Self::FromDLPack => "FromDLPack",
            Self::Element => "Element",
            Self::Record => "Record",
        }
    }

    const fn of_rows(self) -> bool {
        matches!(self, Self::Element | Self::Record)
    }

    /// The sites of the attributes on the item and on its fields.
    const fn attr_sites(self, item: &DeriveInput) -> (Site, Site) {
        match &item.data {
            _ if self.of_rows() => (Site::Row, Site::RowField),
            Data::Enum(_) => (Site::Enum, Site::VariantField),
            Data::Struct(_) | Data::Union(_) => (Site::Struct, Site::Field),
        }
    }
}

impl<'a> Input<'a> {
    pub(crate) fn read(item: &'a DeriveInput, derive: Derive, cx: &Ctxt) -> Option<Self> {
        let (on_item, on_field) = derive.attr_sites(item);
        let attrs = attr::parse_attrs(&item.attrs, on_item, cx);
        let body = match &item.data {
            Data::Struct(data) => Body::Struct(read_fields(&data.fields, on_field, cx)),
            Data::Enum(data) if derive.of_rows() => {
                let message = format!("`#[derive({})]` needs a struct", derive.name());
                cx.error(data.enum_token, message);
                return None;
            }
            Data::Enum(data) => Body::Enum(
                data.variants
                    .iter()
                    .map(|variant| Variant::read(variant, cx))
                    .collect(),
            ),
            Data::Union(data) => {
                let kinds = if derive.of_rows() {
                    "a struct"
                } else {
                    "a struct or an enum"
                };
                let name = derive.name();
                let message = format!(
                    "`#[derive({name})]` needs {kinds}; a union does not record which field is valid"
                );
                cx.error(data.union_token, message);
                return None;
            }
        };
        for lifetime in item.generics.lifetimes() {
            let lifetime = &lifetime.lifetime;
            let message =
                format!("a DLPack consumer may outlive `{lifetime}`; the tensor must own its data");
            cx.error(lifetime, message);
        }
        let packed = repr_words(&item.attrs)
            .into_iter()
            .find(|word| word == "packed");
        if let Some(packed) = packed.filter(|_| derive != Derive::Record) {
            cx.error(
                packed,
                "cannot export a packed struct: its fields cannot be borrowed",
            );
        }
        let krate = Krate::of(&attrs, cx.root);
        if derive == Derive::DLPack {
            krate.report_core_path(cx);
        }
        Some(Self {
            ident: &item.ident,
            vis: &item.vis,
            generics: generics(item, &attrs, cx),
            krate,
            attrs,
            body,
        })
    }

    /// Parses an item with errors as far as possible; `None` if the crate's path may be one of the errors.
    pub(crate) fn read_with_errors(
        item: &'a DeriveInput,
        derive: Derive,
        root: Root,
    ) -> Option<Self> {
        let cx = Ctxt::new(root);
        let (on_item, on_field) = derive.attr_sites(item);
        let mut attrs = attr::parse_attrs(&item.attrs, on_item, &cx);
        // A stub needs no bound, and the bound may be the error.
        attrs.retain(|attr| attr.role != Role::Bound);
        let krate = Krate::of(&attrs, root);
        let says_crate = |attr: &Attribute| match &attr.meta {
            Meta::List(list) if attr.path().is_ident("dlpack") => {
                let mut tokens = list.tokens.clone().into_iter();
                tokens.any(
                    |token| matches!(token, TokenTree::Ident(ident) if ident == Role::Crate.name()),
                )
            }
            _ => false,
        };
        if krate.is_default() && item.attrs.iter().any(says_crate) {
            return None;
        }
        let body = match &item.data {
            Data::Struct(data) => read_fields(&data.fields, on_field, &cx),
            Data::Enum(_) | Data::Union(_) => Vec::new(),
        };
        Some(Self {
            ident: &item.ident,
            vis: &item.vis,
            generics: generics(item, &attrs, &cx),
            krate: krate.or_own(),
            attrs,
            body: Body::Struct(body),
        })
    }

    /// `impl DLPack for Item`, with the bound `Send` for type parameters. Without it, a parameter without the bound `Element`
    /// would also lack `Send`, and be reported twice.
    pub(crate) fn implement_sent(&self, of: TokenStream, items: TokenStream) -> TokenStream {
        let mut generics = self.generics.clone();
        let says_bounds = self.attrs.iter().any(|attr| attr.role == Role::Bound);
        let k = self.krate.private(Span::call_site());
        for param in self.generics.type_params().filter(|_| !says_bounds) {
            let ident = &param.ident;
            generics
                .make_where_clause()
                .predicates
                .push(parse_quote!(#ident: #k::Send));
        }
        self.implement_with(&generics, of, items)
    }

    /// `impl Trait for Item`, with the bounds of the item only.
    pub(crate) fn implement(&self, of: TokenStream, items: TokenStream) -> TokenStream {
        self.implement_with(&self.generics, of, items)
    }

    fn implement_with(
        &self,
        generics: &Generics,
        of: TokenStream,
        items: TokenStream,
    ) -> TokenStream {
        let (generics, arguments, bounds) = generics.split_for_impl();
        let ident = self.ident;
        let own_path = self.krate.lint_of_own_path();
        quote! {
            #[automatically_derived]
            #[allow(deprecated, unused_imports, clippy::absolute_paths #own_path)]
            impl #generics #of for #ident #arguments #bounds {
                #items
            }
        }
    }
}

impl Input<'_> {
    /// All fields, including those of all variants.
    pub(crate) fn all_fields(&self) -> impl Iterator<Item = &Field<'_>> {
        let (own, variants) = match &self.body {
            Body::Struct(fields) => (&fields[..], &[][..]),
            Body::Enum(variants) => (&[][..], &variants[..]),
        };
        own.iter()
            .chain(variants.iter().flat_map(|variant| &variant.fields))
    }

    /// An inherent `impl`.
    pub(crate) fn implement_own(&self, items: TokenStream) -> TokenStream {
        let (generics, arguments, bounds) = self.generics.split_for_impl();
        let ident = self.ident;
        quote! {
            #[automatically_derived]
            #[allow(deprecated, clippy::absolute_paths)]
            impl #generics #ident #arguments #bounds {
                #items
            }
        }
    }
}

impl<'a> Variant<'a> {
    fn read(variant: &'a syn::Variant, cx: &Ctxt) -> Self {
        Self {
            ident: &variant.ident,
            fields: read_fields(&variant.fields, Site::VariantField, cx),
            is_unit: matches!(variant.fields, Fields::Unit),
            attrs: attr::parse_attrs(&variant.attrs, Site::Variant, cx),
        }
    }
}

fn read_fields<'a>(fields: &'a Fields, at: Site, cx: &Ctxt) -> Vec<Field<'a>> {
    let read = |(index, field): (usize, &'a syn::Field)| {
        let span = location_of(&field.ty);
        Field {
            member: match &field.ident {
                Some(ident) => Member::Named(ident),
                None => Member::Unnamed(Index {
                    index: u32::try_from(index).expect("rustc stops before 2^32 fields"),
                    span,
                }),
            },
            vis: &field.vis,
            ty: &field.ty,
            at: span,
            attrs: attr::parse_attrs(&field.attrs, at, cx),
            doc: doc_text(&field.attrs),
        }
    };
    fields.iter().enumerate().map(read).collect()
}

/// The text of a doc comment, without the leading space of each line. Text from a macro is not available.
fn doc_text(attrs: &[Attribute]) -> Option<String> {
    let line = |attr: &Attribute| match &attr.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => {
            let text = syn::parse2::<LitStr>(meta.value.to_token_stream()).ok()?;
            let text = text.value();
            Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
        }
        _ => None,
    };
    let lines: Vec<_> = attrs.iter().filter_map(line).collect();
    let text = lines.join("\n").trim().replace('\0', "");
    (!text.is_empty()).then_some(text)
}

impl Field<'_> {
    pub(crate) fn attr(&self, role: Role) -> Option<&Attr> {
        self.attrs.iter().find(|attr| attr.role == role)
    }

    /// The name without `r#`; for a tuple struct, the index.
    pub(crate) fn name(&self) -> String {
        match &self.member {
            Member::Named(ident) => ident.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }
}

impl ToTokens for Member<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Named(ident) => ident.to_tokens(tokens),
            Self::Unnamed(index) => index.to_tokens(tokens),
        }
    }
}

/// The words in all `#[repr(..)]`: `C`, `packed`, `align` and so on.
pub(crate) fn repr_words(attrs: &[Attribute]) -> Vec<Ident> {
    let mut words = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
        if let Meta::List(list) = &attr.meta {
            words.extend(
                list.tokens
                    .clone()
                    .into_iter()
                    .filter_map(|token| match token {
                        TokenTree::Ident(word) => Some(word),
                        _ => None,
                    }),
            );
        }
    }
    words
}

fn generics(item: &DeriveInput, attrs: &[Attr], cx: &Ctxt) -> Generics {
    let mut generics = item.generics.clone();
    let bound = attrs.iter().find_map(|attr| match &attr.value {
        Value::Text(text) if attr.role == Role::Bound => Some(text),
        _ => None,
    });
    if let Some(text) = bound {
        match text.parse_with(Punctuated::<WherePredicate, Token![,]>::parse_terminated) {
            Ok(predicates) => generics.make_where_clause().predicates.extend(predicates),
            Err(_) => cx.error(
                text,
                "expected predicates of a where clause, such as `bound = \"T: Element\"`",
            ),
        }
    }
    generics
}
