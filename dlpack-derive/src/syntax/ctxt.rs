//! Collects the errors of a stage, so that one compilation shows them all, in the words of the crate that the user has.

use core::cell::RefCell;
use core::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

use crate::syntax::root::Root;

/// The errors found so far.
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

    /// Reports a mistake at the tokens that made it.
    pub(crate) fn error(&self, at: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(at, message));
    }

    pub(crate) fn push(&self, error: Error) {
        self.errors.borrow_mut().push(error);
    }

    /// `None` once anything was reported: a later stage would only repeat it in other words.
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
