//! What a build for type stubs leaves under the name of a type, among the macros: the names of its tensors.
//!
//! `#[dlpack_pymethods]` sees a block of methods and the path of a type, and no field. By that path it finds this macro too,
//! since `use` brings in whatever has the name. The macro passes on what it was given, with the inventory in front.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::plan::{Main, Plan};
use crate::syntax::input::Field;
use crate::syntax::ty;

pub(crate) fn of_class(ident: &Ident, plan: &Plan<'_>) -> TokenStream {
    let tensor = (!matches!(plan.main, Main::None)).then(|| quote!(tensor));
    let named = plan.tensors.iter().map(|named| {
        let (name, doc) = (&named.name, named.doc.unwrap_or_default());
        quote!((#name, #doc))
    });
    let rows = plan.columns.iter().filter_map(|field| {
        let rows = ty::rows(field.ty)?;
        Some(quote!([#rows]))
    });
    leave(ident, &quote!(#tensor #(#named)* #(#rows)*))
}

pub(crate) fn of_record(ident: &Ident, columns: &[&Field<'_>]) -> TokenStream {
    let named = columns.iter().map(|field| {
        let (name, doc) = (field.name(), field.doc.as_deref().unwrap_or_default());
        quote!((#name, #doc))
    });
    leave(ident, &quote!(#(#named)*))
}

/// Of an item with mistakes, which are enough.
pub(crate) fn of_none(ident: &Ident) -> TokenStream {
    leave(ident, &TokenStream::new())
}

fn leave(ident: &Ident, inventory: &TokenStream) -> TokenStream {
    let own = format_ident!("__dlpack_{}", ident);
    quote! {
        #[doc(hidden)]
        #[allow(unused_macros)]
        macro_rules! #own {
            ([$($to:tt)*] $($rest:tt)*) => { $($to)*! { [$($to)*] { #inventory } $($rest)* } };
        }
        #[doc(hidden)]
        #[allow(unused_imports)]
        pub(crate) use #own as #ident;
    }
}
