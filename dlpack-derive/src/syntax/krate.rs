//! The paths of the expansion: the crate that it calls, and where rustc should see the call.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::syntax::attr::{Attr, Value};
use crate::syntax::root::Root;

/// The crate that the expansion calls.
pub(crate) struct Krate {
    pub(crate) root: Root,
    /// From `crate = path`.
    path: Option<Path>,
}

impl Krate {
    pub(crate) fn of(attrs: &[Attr], root: Root) -> Self {
        let path = attrs.iter().find_map(|attr| match &attr.value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        });
        Self { root, path }
    }

    /// Whether nobody said `crate = path`.
    pub(crate) const fn is_default(&self) -> bool {
        self.path.is_none()
    }

    /// The root, located at a span: rustc points where the first token of a path lies.
    pub(crate) fn root(&self, at: Span) -> TokenStream {
        match (&self.path, self.root) {
            // `$crate` must keep resolving as it was written.
            (Some(path), _) => relocate(path.to_token_stream(), at),
            (None, Root::Core) => quote_spanned!(at=> ::dlpack_core),
            (None, Root::Pyo3) => quote_spanned!(at=> ::dlpack_pyo3),
        }
    }

    /// What only the expansion uses: named by the patch version, so that no other release answers to it.
    pub(crate) fn private(&self, at: Span) -> TokenStream {
        const NAME: &str = concat!("__private", env!("CARGO_PKG_VERSION_PATCH"));
        let (root, name) = (self.root(at), Ident::new(NAME, at));
        quote_spanned!(at=> #root::#name)
    }
}

fn relocate(tokens: TokenStream, at: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(token.span().located_at(at));
        token
    });
    moved.collect()
}

/// The place where some tokens of the user end, with the names of the expansion in scope.
pub(crate) fn end_site(tokens: &impl ToTokens) -> Span {
    let last = tokens.to_token_stream().into_iter().last();
    Span::call_site().located_at(last.map_or_else(Span::call_site, |token| token.span()))
}

/// A parenthesis at a place of its own.
pub(crate) fn parenthesis(inner: TokenStream, at: Span) -> Group {
    let mut group = Group::new(Delimiter::Parenthesis, inner);
    group.set_span(at);
    group
}

/// The place of some tokens of the user, with the names of the expansion in scope.
pub(crate) fn site(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}
