//! The paths in generated code: the crate that it calls, and the span of each call.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt, quote};
use syn::spanned::Spanned;
use syn::{Path, Token};

use crate::syntax::attr::{Attr, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::root::Root;

/// The crate that generated code calls.
pub(crate) struct Krate {
    pub(crate) root: Root,
    /// From the key `crate = path`.
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

    /// Reports the path of `dlpack_core` for a macro of `dlpack_pyo3`, which calls functions that only the latter has.
    pub(crate) fn report_core_path(&self, cx: &Ctxt) {
        if let Some(path) = self.core_for_pyo3() {
            let message = "this is the macro of `dlpack_pyo3`: write `crate = ::dlpack_pyo3`, or import the macro of `dlpack_core`";
            cx.error(path, message);
        }
    }

    /// The crate of the macro, if the path is that of `dlpack_core` by mistake.
    pub(crate) fn or_own(self) -> Self {
        match self.core_for_pyo3() {
            Some(_) => Self::of(&[], self.root),
            None => self,
        }
    }

    /// The path of `dlpack_core`, given to a macro of `dlpack_pyo3`.
    fn core_for_pyo3(&self) -> Option<&Path> {
        let path = self.path.as_ref()?;
        let is_core = path.segments.len() == 1 && path.segments[0].ident == "dlpack_core";
        (is_core && self.root == Root::Pyo3).then_some(path)
    }

    /// The lint that the user's own path to the crate can break, to allow after others: the path may be longer than an import of
    /// theirs needs.
    pub(crate) fn lint_of_own_path(&self) -> Option<TokenStream> {
        (!self.is_default()).then(|| quote!(, unused_qualifications))
    }

    /// Whether the key `crate` is absent.
    pub(crate) const fn is_default(&self) -> bool {
        self.path.is_none()
    }

    /// The crate's root, located at a span: rustc's errors point to the first token of a path.
    pub(crate) const fn root(&self, at: Span) -> At<'_> {
        At {
            krate: self,
            at,
            private: false,
        }
    }

    /// The crate's private module. Its name contains the patch version, so that no other release resolves it.
    pub(crate) const fn private(&self, at: Span) -> At<'_> {
        At {
            private: true,
            ..self.root(at)
        }
    }
}

/// A path of the crate with a span. Tokens are appended one by one: joining two streams costs two calls into rustc, and an
/// expansion has about thirty paths.
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
            // `$crate` must keep its own hygiene to resolve.
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

/// The location of the last of the user's tokens, with the hygiene of the expansion.
pub(crate) fn end_location_of(tokens: &impl ToTokens) -> Span {
    let last = tokens.to_token_stream().into_iter().last();
    Span::call_site().located_at(last.map_or_else(Span::call_site, |token| token.span()))
}

/// Wraps tokens in parentheses with a span of their own.
pub(crate) fn parenthesize(inner: TokenStream, at: Span) -> Group {
    let mut group = Group::new(Delimiter::Parenthesis, inner);
    group.set_span(at);
    group
}

/// The location of the user's tokens, with the hygiene of the expansion.
pub(crate) fn location_of(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}
