//! Generates implementations for an item with errors, so that its uses cause no further errors.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::expand::call::Paths;
use crate::plan::row::params_without_bounds;
use crate::syntax::input::{Body, Derive, Field, Input};
use crate::syntax::role::Role;
use crate::syntax::root::Root;
use crate::syntax::ty::{is_named_rc, is_pointer};

pub(crate) fn expand_stub(derive: Derive, root: Root, item: &DeriveInput) -> Option<TokenStream> {
    let input = Input::read_with_errors(item, derive, root)?;
    // A type with such a field is most likely not `Send`, so the stub would cause an error.
    let stays = |field: &Field<'_>| is_pointer(field.ty) || is_named_rc(field.ty);
    if input.all_fields().any(stays) {
        return None;
    }
    let Paths { c, k, .. } = Paths::new(&input);
    let describe = |signature: TokenStream| {
        quote! {
            fn #signature -> #k::Described<'_> {
                #k::unreachable_stub()
            }
        }
    };
    let names = quote!(const NAMES: &'static [&'static #k::Str] = &[];);
    let tokens = match derive {
        Derive::DLPack => {
            let mut tokens =
                input.implement_sent(quote!(#c::DLPack), describe(quote!(describe(&self))));
            if has_tensors(&input) {
                let describe = describe(quote!(describe_tensor(&self, _: &#k::Str)));
                tokens.extend(input.implement(quote!(#c::DLPackTensors), quote!(#names #describe)));
            }
            tokens
        }
        Derive::FromDLPack => input.implement(
            quote!(#c::FromDLPack),
            quote! {
                fn from_dlpack(_: #c::Managed) -> #k::Result<Self, #c::Error> {
                    #k::unreachable_stub()
                }
            },
        ),
        // The trait needs `'static + Send + Sync`, which such a parameter is not known to be.
        Derive::Record
            if item.generics.lifetimes().next().is_some()
                || params_without_bounds(&item.generics).next().is_some() =>
        {
            return None;
        }
        Derive::Record => input.implement(
            quote!(#c::Record),
            quote! {
                #names
                fn column<'a>(_: &'a [Self], _: &#k::Str) -> #k::Described<'a> {
                    #k::unreachable_stub()
                }
            },
        ),
        // The implementation of `Element` depends on its fields, so there is no stub.
        Derive::Element => return None,
    };
    Some(tokens)
}

fn has_tensors(input: &Input<'_>) -> bool {
    let Body::Struct(fields) = &input.body else {
        return false;
    };
    let attrs = fields
        .iter()
        .flat_map(|field| &field.attrs)
        .chain(&input.attrs);
    attrs
        .into_iter()
        .any(|attr| matches!(attr.role, Role::Tensor | Role::Columns))
}
