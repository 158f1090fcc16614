//! The paths of the expansion: the crate that it calls, and where rustc should see the call.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt};
use syn::spanned::Spanned;
use syn::{Path, Token};

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
    pub(crate) const fn root(&self, at: Span) -> At<'_> {
        At {
            krate: self,
            at,
            private: false,
        }
    }

    /// What only the expansion uses: named by the patch version, so that no other release answers to it.
    pub(crate) const fn private(&self, at: Span) -> At<'_> {
        At {
            private: true,
            ..self.root(at)
        }
    }
}

/// A path of the crate at a place. It goes into a stream token by token: to join two streams rustc is asked, twice, and
/// an expansion has some thirty paths.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    krate: &'a Krate,
    at: Span,
    private: bool,
}

impl ToTokens for At<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        const PRIVATE: &str = concat!("__private", env!("CARGO_PKG_VERSION_PATCH"));
        let At { krate, at, private } = *self;
        let name = |name, tokens: &mut TokenStream| {
            Token![::]([at; 2]).to_tokens(tokens);
            tokens.append(Ident::new(name, at));
        };
        match (&krate.path, krate.root) {
            // `$crate` must keep resolving as it was written.
            (Some(path), _) => {
                tokens.append_all(path.to_token_stream().into_iter().map(|mut token| {
                    token.set_span(token.span().located_at(at));
                    token
                }))
            }
            (None, Root::Core) => name("dlpack_core", tokens),
            (None, Root::Pyo3) => name("dlpack_pyo3", tokens),
        }
        if private {
            name(PRIVATE, tokens);
        }
    }
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
