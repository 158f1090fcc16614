//! Generates the check that a Python class has its methods, so that a missing attribute is a compile error.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::expand::call::Paths;
use crate::plan::{Main, Plan};
use crate::syntax::krate::location_of;
use crate::syntax::root::Root;

/// Reads the constant that `#[dlpack_pymethods]` adds. Without it, a trait constant is read, and its type fails the bound. A
/// type that is not a Python class passes with either.
pub(crate) fn expand_methods_check(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let Paths { input, k, .. } = paths;
    // Python classes have no generic parameters.
    if input.krate.root == Root::Core || !input.generics.params.is_empty() {
        return None;
    }
    let (at, ident) = (location_of(input.ident), input.ident);
    let mut added = quote_spanned!(at=> #ident::__dlpack_tensors__);
    if !matches!(plan.main, Main::None) {
        // With `Protocol`, the class attribute is defined by hand under the other name.
        added = quote_spanned!(at=> (#ident::__dlpack_c_exchange_api__, #added));
    }
    let at_k = paths.k(at);
    let call = quote_spanned! {at=>
        #at_k::attached::<_, _, #ident>(#at_k::Class::<#ident>::IS, #added)
    };
    // The error for a frozen class points to the key `set`.
    let settable = plan.tensors.iter().filter_map(|named| {
        let at = location_of(named.set?);
        let at_k = paths.k(at);
        Some(quote_spanned!(at=> #at_k::settable::<_, #ident>(#at_k::Class::<#ident>::FROZEN);))
    });
    Some(quote! {
        #[allow(deprecated, unused_imports, clippy::absolute_paths)]
        const _: fn() = || {
            use #k::{UndeclaredMethods as _, ClassDefaults as _};
            #call;
            #(#settable)*
        };
    })
}
