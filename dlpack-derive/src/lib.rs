//! The derive macros of `dlpack-core`: syntax to plan to a few calls into core. They know no DLPack number.
//!
//! Use them through `dlpack_core` (feature `derive`) or `dlpack_pyo3`: the macros are documented once for both, under `docs`.
//! `docs/dlpack.md` is the grammar of `#[dlpack(..)]`.

#![forbid(unsafe_code)]

mod expand;
mod plan;
mod pymethods;
mod syntax;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

use crate::expand::{dlpack, element, from, record, stub};
use crate::plan::Plan;
use crate::pymethods::methods;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::{Derive, Input};
use crate::syntax::root::Root;

#[doc = include_str!("docs/dlpack.md")]
#[proc_macro_derive(DLPack, attributes(dlpack))]
pub fn derive_dlpack(item: TokenStream) -> TokenStream {
    derive(Derive::DLPack, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/from_dlpack.md")]
#[proc_macro_derive(FromDLPack, attributes(dlpack))]
pub fn derive_from_dlpack(item: TokenStream) -> TokenStream {
    derive(Derive::FromDLPack, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/element.md")]
#[proc_macro_derive(Element, attributes(dlpack))]
pub fn derive_element(item: TokenStream) -> TokenStream {
    derive(Derive::Element, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/record.md")]
#[proc_macro_derive(Record, attributes(dlpack))]
pub fn derive_record(item: TokenStream) -> TokenStream {
    derive(Derive::Record, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/dlpack.md")]
#[proc_macro_derive(PyDLPack, attributes(dlpack))]
pub fn derive_py_dlpack(item: TokenStream) -> TokenStream {
    derive(Derive::DLPack, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/from_dlpack.md")]
#[proc_macro_derive(PyFromDLPack, attributes(dlpack))]
pub fn derive_py_from_dlpack(item: TokenStream) -> TokenStream {
    derive(Derive::FromDLPack, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/element.md")]
#[proc_macro_derive(PyElement, attributes(dlpack))]
pub fn derive_py_element(item: TokenStream) -> TokenStream {
    derive(Derive::Element, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/record.md")]
#[proc_macro_derive(PyRecord, attributes(dlpack))]
pub fn derive_py_record(item: TokenStream) -> TokenStream {
    derive(Derive::Record, Root::Pyo3, item.into()).into()
}

/// Gives a Python class the methods by which consumers ask for its tensor.
#[proc_macro_attribute]
pub fn dlpack_pymethods(options: TokenStream, item: TokenStream) -> TokenStream {
    let stubs = cfg!(feature = "stubs");
    methods::expand(options.into(), item.into(), stubs).into()
}

fn derive(derive: Derive, root: Root, item: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    let item = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let cx = Ctxt::new(root);
    run(derive, &item, &cx).unwrap_or_else(|| {
        let mut tokens = cx.into_compile_errors();
        tokens.extend(stub::stub(derive, root, &item));
        tokens
    })
}

/// Parse, check, plan, check, expand; `None` when mistakes were collected.
fn run(derive: Derive, item: &syn::DeriveInput, cx: &Ctxt) -> Option<proc_macro2::TokenStream> {
    let input = Input::read(item, derive, cx);
    cx.check()?;
    let input = input?;
    match derive {
        Derive::Element => element::derive(&input, item, cx),
        Derive::Record => record::derive(&input, item, cx),
        Derive::DLPack | Derive::FromDLPack => {
            let plan = Plan::new(&input, cx)?;
            cx.check()?;
            if derive == Derive::FromDLPack {
                return from::derive(&input, &plan, cx);
            }
            Some(dlpack::expand(&input, &plan))
        }
    }
}
