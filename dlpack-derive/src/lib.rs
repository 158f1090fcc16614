//! The derive macros of `dlpack-core` and `dlpack-pyo3`: they parse attributes into a plan, and expand it into a few calls of
//! the core. No constant of DLPack is defined here.
//!
//! Use the macros through `dlpack_core` (feature `derive`) or `dlpack_pyo3`. Both share the documentation in `docs`;
//! `docs/dlpack.md` is the grammar of `#[dlpack(..)]`.

#![forbid(unsafe_code)]

mod expand;
mod plan;
mod pymethods;
mod syntax;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

use crate::expand::{complete, dlpack, element, from, inventory, record, stub};
use crate::plan::Plan;
use crate::pymethods::methods;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::fragment::resolve_fragments;
use crate::syntax::input::{Derive, Input};
use crate::syntax::root::Root;

#[doc = include_str!("docs/dlpack.md")]
#[proc_macro_derive(DLPack, attributes(dlpack))]
pub fn derive_dlpack(item: TokenStream) -> TokenStream {
    run_derive(Derive::DLPack, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/from_dlpack.md")]
#[proc_macro_derive(FromDLPack, attributes(dlpack))]
pub fn derive_from_dlpack(item: TokenStream) -> TokenStream {
    run_derive(Derive::FromDLPack, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/element.md")]
#[proc_macro_derive(Element, attributes(dlpack))]
pub fn derive_element(item: TokenStream) -> TokenStream {
    run_derive(Derive::Element, Root::Core, item.into()).into()
}

#[doc = include_str!("docs/record.md")]
#[proc_macro_derive(Record, attributes(dlpack))]
pub fn derive_record(item: TokenStream) -> TokenStream {
    run_derive(Derive::Record, Root::Core, item.into()).into()
}

// If a derive is missing, rustc suggests all derives with this attribute by the names in this crate. Two macros of one crate
// cannot share a name, and a second macro crate would cost every user compile time, so these have the prefix `Py`.

#[doc = include_str!("docs/dlpack.md")]
#[proc_macro_derive(PyDLPack, attributes(dlpack))]
pub fn derive_py_dlpack(item: TokenStream) -> TokenStream {
    run_derive(Derive::DLPack, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/from_dlpack.md")]
#[proc_macro_derive(PyFromDLPack, attributes(dlpack))]
pub fn derive_py_from_dlpack(item: TokenStream) -> TokenStream {
    run_derive(Derive::FromDLPack, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/element.md")]
#[proc_macro_derive(PyElement, attributes(dlpack))]
pub fn derive_py_element(item: TokenStream) -> TokenStream {
    run_derive(Derive::Element, Root::Pyo3, item.into()).into()
}

#[doc = include_str!("docs/record.md")]
#[proc_macro_derive(PyRecord, attributes(dlpack))]
pub fn derive_py_record(item: TokenStream) -> TokenStream {
    run_derive(Derive::Record, Root::Pyo3, item.into()).into()
}

/// Adds DLPack's methods to a Python class.
#[proc_macro_attribute]
pub fn dlpack_pymethods(options: TokenStream, item: TokenStream) -> TokenStream {
    if STUBS {
        return methods::request_for_stubs(options.into(), item.into()).into();
    }
    let options = proc_macro2::TokenStream::from(options);
    let tokens = methods::expand_attribute(options.clone(), item.into(), None);
    complete::prepend_imports(|| complete::option_imports(options), tokens).into()
}

/// The callback of `#[dlpack_pymethods]` in builds for type stubs.
#[doc(hidden)]
#[proc_macro]
pub fn dlpack_pymethods_knowing(answer: TokenStream) -> TokenStream {
    methods::expand_callback(answer.into()).into()
}

/// Whether this is a build for type stubs. Tests pass the value explicitly.
const STUBS: bool = cfg!(all(feature = "stubs", not(test)));

fn run_derive(
    derive: Derive,
    root: Root,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let item = match syn::parse2(resolve_fragments(item)) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let cx = Ctxt::new(root);
    let tokens = try_derive(derive, &item, STUBS, &cx).unwrap_or_else(|| {
        let mut tokens = cx.into_compile_errors();
        tokens.extend(stub::expand_stub(derive, root, &item));
        let is_asked = match derive {
            Derive::DLPack => root == Root::Pyo3,
            Derive::Record => true,
            Derive::FromDLPack | Derive::Element => false,
        };
        if STUBS && is_asked {
            tokens.extend(inventory::of_none(&item.ident));
        }
        tokens
    });
    complete::prepend_imports(|| complete::derive_imports(derive, root, &item), tokens)
}

/// Parses, plans and expands an item; `None` if errors were reported.
fn try_derive(
    derive: Derive,
    item: &syn::DeriveInput,
    stubs: bool,
    cx: &Ctxt,
) -> Option<proc_macro2::TokenStream> {
    let input = Input::read(item, derive, cx);
    cx.check()?;
    let input = input?;
    match derive {
        Derive::Element => element::expand_element(&input, item, cx),
        Derive::Record => record::derive_record(&input, item, stubs, cx),
        Derive::DLPack | Derive::FromDLPack => {
            let plan = Plan::new(&input, cx)?;
            cx.check()?;
            if derive == Derive::FromDLPack {
                return from::expand_from_dlpack(&input, &plan, cx);
            }
            plan.check_types(cx);
            cx.check()?;
            let mut tokens = dlpack::expand_dlpack(&input, &plan);
            if stubs && cx.root == Root::Pyo3 {
                tokens.extend(inventory::of_class(input.ident, &plan));
            }
            Some(tokens)
        }
    }
}
