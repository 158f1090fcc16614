//! For type stubs: a macro under the name of the type, which knows the names of its tensors.
//!
//! `#[dlpack_pymethods]` sees a block of methods and the path of a type, but no fields. The same path resolves to this macro,
//! because `use` imports a name from all namespaces. The macro calls the given macro with its input, and the inventory before
//! it.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::plan::{Main, Plan};
use crate::syntax::input::Field;
use crate::syntax::ty;

pub(crate) fn of_class(ident: &Ident, plan: &Plan<'_>) -> TokenStream {
    let tensor = (!matches!(plan.main, Main::None)).then(|| quote!(tensor));
    let named = plan.tensors.iter().map(|named| {
        let (name, doc) = (&named.name, named.doc.unwrap_or_default());
        let set = named.set.map(|_| quote!(, set));
        quote!((#name, #doc #set))
    });
    let rows = plan.columns.iter().filter_map(|field| {
        let rows = ty::type_of_rows(field.ty)?;
        Some(quote!([#rows]))
    });
    let is_list = tensor.is_none() && plan.tensors.is_empty() && plan.columns.len() == 1;
    let records = is_list.then(|| quote!(records));
    define_inventory(ident, &quote!(#tensor #records #(#named)* #(#rows)*))
}

pub(crate) fn of_record(ident: &Ident, columns: &[&Field<'_>]) -> TokenStream {
    let named = columns.iter().map(|field| {
        let (name, doc) = (field.name(), field.doc.as_deref().unwrap_or_default());
        quote!((#name, #doc))
    });
    define_inventory(ident, &quote!(#(#named)*))
}

/// An empty inventory for an item with errors.
pub(crate) fn of_none(ident: &Ident) -> TokenStream {
    define_inventory(ident, &TokenStream::new())
}

fn define_inventory(ident: &Ident, inventory: &TokenStream) -> TokenStream {
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
