//! Collects the errors of a stage, so that one compilation shows them all. Messages use the names of the user's crate.

use core::cell::RefCell;
use core::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

use crate::syntax::root::Root;

/// The errors reported so far.
pub(crate) struct Ctxt {
    pub(crate) root: Root,
    errors: RefCell<Vec<Error>>,
}

impl Ctxt {
    pub(crate) const fn new(root: Root) -> Self {
        Self {
            root,
            errors: RefCell::new(Vec::new()),
        }
    }

    /// Reports an error at the tokens that caused it.
    pub(crate) fn error(&self, at: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(at, message));
    }

    pub(crate) fn push(&self, error: Error) {
        self.errors.borrow_mut().push(error);
    }

    /// `None` if an error has been reported: a later stage would only report its consequences.
    pub(crate) fn check(&self) -> Option<()> {
        self.errors.borrow().is_empty().then_some(())
    }

    pub(crate) fn into_errors(self) -> Vec<Error> {
        self.errors.into_inner()
    }

    pub(crate) fn into_compile_errors(self) -> TokenStream {
        self.into_errors()
            .iter()
            .map(Error::to_compile_error)
            .collect()
    }
}
