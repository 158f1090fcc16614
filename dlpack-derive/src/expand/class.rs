//! What a derive for Python adds: the check that the class got its methods, so that nobody finds out in Python.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::expand::call::Paths;
use crate::plan::{Main, Plan};
use crate::syntax::krate::site;
use crate::syntax::root::Root;

/// Reads the constant that `#[dlpack_pymethods]` adds. Where there is none a trait's stands in for it,
/// whose type is the error; and a type that is no class passes with either.
pub(crate) fn check(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let Paths { input, k, .. } = paths;
    // Python's classes have no parameters.
    if input.krate.root == Root::Core || !input.generics.params.is_empty() {
        return None;
    }
    let (at, ident) = (site(input.ident), input.ident);
    let mut added = quote_spanned!(at=> #ident::__dlpack_tensors__);
    if !matches!(plan.main, Main::None) {
        // By hand, it is the other one.
        added = quote_spanned!(at=> (#ident::__dlpack_c_exchange_api__, #added));
    }
    let at_k = paths.k(at);
    let call = quote_spanned! {at=>
        #at_k::attached::<_, _, #ident>(#at_k::Class::<#ident>::IS, #added)
    };
    // A class that nobody can change is named where it says that it is changed.
    let settable = plan.tensors.iter().filter_map(|named| {
        let at = site(named.set?);
        let at_k = paths.k(at);
        Some(quote_spanned!(at=> #at_k::settable::<_, #ident>(#at_k::Class::<#ident>::FROZEN);))
    });
    Some(quote! {
        #[allow(deprecated, unused_imports, clippy::absolute_paths)]
        const _: fn() = || {
            use #k::{Forgotten as _, Otherwise as _};
            #call;
            #(#settable)*
        };
    })
}
