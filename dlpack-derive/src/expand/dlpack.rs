//! `DLPack`: from the plan to a few calls into core, never logic.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::expand::call::{Borrow, Paths, argument, facts, parts, policy_calls, typed, usual};
use crate::expand::class;
use crate::expand::tensors;
use crate::plan::tensor::{Access, Slot, Tensor};
use crate::plan::{Arm, Main, Plan};
use crate::syntax::expr::receiver;
use crate::syntax::input::{Field, Input};
use crate::syntax::krate::site;
use crate::syntax::role::Role;
use crate::syntax::root::Root;

pub(crate) fn expand(input: &Input<'_>, plan: &Plan<'_>) -> TokenStream {
    let paths = Paths::new(input);
    let mut tokens = main(&paths, &plan.main);
    if !plan.tensors.is_empty() || !plan.columns.is_empty() {
        tokens.extend(tensors::expand(&paths, plan));
    }
    tokens.extend(class::check(&paths, plan));
    tokens
}

fn main(paths: &Paths<'_>, main: &Main<'_>) -> TokenStream {
    let items = match main {
        Main::None => return TokenStream::new(),
        Main::Tensor { tensor, owner } => main_tensor(paths, tensor, *owner),
        Main::Whole(field) => whole_field(paths, field),
        Main::Variants(arms) => variants(paths, arms),
        Main::Via(expr, policy) => {
            let k = paths.k(site(expr));
            let mut body = quote_spanned!(site(expr)=> #k::via(#expr));
            if policy.legacy_refuse || policy.release_immediate {
                let policy = policy_calls(policy);
                let c = &paths.c;
                body = quote!(#c::Parts::new() #policy .via(#expr));
            }
            paths.describe(Borrow::Shared, &body)
        }
    };
    let c = &paths.c;
    paths.input.implement_sent(quote!(#c::DLPack), items)
}

fn main_tensor(paths: &Paths<'_>, tensor: &Tensor<'_>, owner: Option<&Field<'_>>) -> TokenStream {
    let Paths { c, k, .. } = paths;
    let facts = facts(paths, tensor);
    let facts = quote!({ use #k::Unsaid as _; #facts });
    let mut extras = TokenStream::new();
    if tensor.access == Access::Writable {
        extras.extend(quote!(.exclusive()));
    }
    extras.extend(lists(paths, tensor));
    match owner {
        None => extras.extend(usual(paths, tensor)),
        Some(owner) => {
            let (args, route, owner_k) = typed(paths, owner.ty, "Probe");
            let (this, member) = (argument(owner.ty.span()), &owner.member);
            extras.extend(paths.share(&quote_spanned! {site(owner.ty)=>
                #k::Some(#owner_k::share::<#args>(
                    &#this.#member, #c::DLPack::describe(#this), request, #route
                ))
            }));
        }
    }
    let mut items = paths.extras(&facts, &extras);
    items.extend(paths.describe(Borrow::Shared, &parts(paths, tensor, Borrow::Shared)));
    if let (Some(field), true) = (tensor.data.field(), tensor.access != Access::ReadOnly) {
        let mut body = parts(paths, tensor, Borrow::Exclusive);
        if tensor.access == Access::Writable {
            let (args, route, k) = typed(paths, field.ty, "Probe");
            let check = quote_spanned!(site(field.ty)=> #k::writable::<#args>(#route););
            body = quote!(#check #body);
        }
        items.extend(paths.describe(Borrow::Exclusive, &body));
    }
    items
}

/// Shape and strides where they lie, if one field has both: core asks its type whether it is a `Layout`.
fn lists(paths: &Paths<'_>, tensor: &Tensor<'_>) -> Option<TokenStream> {
    let (Some(Slot::Field(shape)), Some((Role::Strides, Slot::Field(strides)))) =
        (&tensor.shape, &tensor.strides)
    else {
        return None;
    };
    if !core::ptr::eq(*shape, *strides) {
        return None;
    }
    let k = &paths.k;
    let (ty, at, member) = (shape.ty, site(shape.ty), &shape.member);
    let (at_k, this, own) = (paths.k(at), argument(at), argument(Span::call_site()));
    let lists = quote_spanned!(at=> #at_k::LentLists::<#ty>);
    Some(quote! {
        .lists(
            { use #k::Unsaid as _; #lists::LIE_THERE },
            |#own| { use #k::Unsaid as _; #lists::of(&#this.#member) },
        )
    })
}

fn whole_field(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let k = &paths.k;
    let ty = field.ty;
    let facts = quote!({ use #k::Unsaid as _; #k::Whole::<#ty>::FACTS });
    let (args, route, at_k) = typed(paths, field.ty, "Whole");
    let (at, this, member) = (site(ty), receiver(ty.span()), &field.member);
    let describe = quote_spanned!(at=> #at_k::whole::<#args>(&#this.#member, #route));
    let describe_mut = quote_spanned!(at=> #at_k::whole_mut::<#args>(&mut #this.#member, #route));
    let methods = [
        paths.describe(Borrow::Shared, &describe),
        paths.describe(Borrow::Exclusive, &describe_mut),
    ];
    let this = argument(ty.span());
    let share = quote_spanned!(at=> #at_k::whole_share::<#args>(&#this.#member, request, #route));
    let share = paths.share(&share);
    let usual = (paths.input.krate.root == Root::Pyo3).then(|| {
        let this_of_all = argument(Span::call_site());
        let usual = quote_spanned!(at=> #at_k::whole_usual::<#args>(&#this.#member, #route));
        quote!(.usual(|#this_of_all| #usual))
    });
    let extras = paths.extras(&facts, &quote!(#usual #share));
    quote!(#extras #(#methods)*)
}

fn variants(paths: &Paths<'_>, arms: &[Arm<'_>]) -> TokenStream {
    let k = &paths.k;
    let name = paths.input.ident.unraw().to_string();
    let each = |this: Ident,
                function: &str,
                request: Option<TokenStream>,
                skipped: &dyn Fn(&str) -> TokenStream| {
        let arms = arms.iter().map(|Arm { variant, field }| {
            let ident = variant.ident;
            let Some(field) = field else {
                let skipped = skipped(&ident.unraw().to_string());
                let rest = (!variant.is_unit).then(|| quote!({ .. }));
                return quote!(Self::#ident #rest => #skipped,);
            };
            let (args, route, k) = typed(paths, field.ty, "Whole");
            let (at, member) = (site(field.ty), &field.member);
            let function = Ident::new(function, at);
            let rest = (variant.fields.len() > 1).then(|| quote!(, ..));
            let call = quote_spanned!(at=> #k::#function::<#args>(field, #request #route));
            quote!(Self::#ident { #member: field #rest } => #call,)
        });
        quote!(match #this { #(#arms)* })
    };
    let refuse = |variant: &str| quote!(#k::skipped(#name, #variant));
    let here = Span::call_site();
    let methods = [
        paths.describe(
            Borrow::Shared,
            &each(receiver(here), "whole", None, &refuse),
        ),
        paths.describe(
            Borrow::Exclusive,
            &each(receiver(here), "whole_mut", None, &refuse),
        ),
    ];
    let share = paths.share(&each(
        argument(here),
        "whole_share",
        Some(quote!(request,)),
        &|_| quote!(#k::None),
    ));
    let extras = paths.extras(&quote!(#k::Facts::UNKNOWN), &share);
    quote!(#extras #(#methods)*)
}
