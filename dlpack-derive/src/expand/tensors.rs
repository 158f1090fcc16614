//! Generates additional tensors: an accessor for each, and `DLPackTensors` with all names.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::expand::call::{
    Borrow, Paths, Typed, binding_ident, build_description, layout_value, present_value, type_facts,
};
use crate::plan::tensor::{Data, Slot};
use crate::plan::{Main, Named, Plan, Source};
use crate::syntax::expr::receiver_ident;
use crate::syntax::krate::location_of;
use crate::syntax::role::Role;

pub(crate) fn expand_tensors(paths: &Paths<'_>, plan: &Plan<'_>) -> TokenStream {
    let Paths { c, k, .. } = paths;
    let here = Span::call_site();
    let (name, request) = (binding_ident("name", here), binding_ident("request", here));
    let accessors = plan
        .tensors
        .iter()
        .map(|named| expand_accessor(paths, named));
    let own: Vec<_> = plan.tensors.iter().map(|named| &named.name).collect();
    let arms = plan.tensors.iter().map(|named| {
        let (text, accessor) = (&named.name, accessor_name(named));
        quote!(#text => self.#accessor(),)
    });
    let columns: Vec<_> = plan
        .columns
        .iter()
        .map(|field| {
            let (at, ty) = (field.at, field.ty);
            let k = paths.k(at);
            let names = quote_spanned!(at=> #k::Table::<#ty>::NAMES);
            let (this, member, name) =
                (receiver_ident(at), &field.member, binding_ident("name", at));
            (
                names,
                quote_spanned!(at=> #k::describe_column::<#ty>(&#this.#member, #name)),
            )
        })
        .collect();
    let names = match (&own[..], &columns[..]) {
        (own, []) => quote!(&[#(#own),*]),
        ([], [(names, _)]) => quote!({ use #k::ProbeDefaults as _; #names }),
        (own, columns) => {
            let own = (!own.is_empty()).then(|| quote!(&[#(#own),*],));
            let columns = columns.iter().map(|(names, _)| names);
            let groups = quote!(&[#own #(#columns),*]);
            let at = location_of(plan.columns[0].ty);
            let at_k = paths.k(at);
            // Evaluating the constant reports duplicate names.
            let joined = quote_spanned!(at=> #at_k::concat_names::<{ #at_k::count_names(#groups) }>(#groups));
            quote!({ use #k::ProbeDefaults as _; &#joined })
        }
    };
    let own_facts = plan.tensors.iter().map(|named| {
        let (text, facts) = (&named.name, source_facts(paths, &named.source));
        quote!((#text, #facts.shared()))
    });
    let own_facts = (!own.is_empty()).then(|| quote!(&[#(#own_facts),*],));
    let column_facts = plan.columns.iter().map(|field| {
        let (k, ty) = (paths.k(field.at), field.ty);
        quote_spanned!(location_of(ty)=> #k::Table::<#ty>::COLUMNS)
    });
    let docs = docs_constant(paths, plan);
    let all = quote!(<Self as #c::DLPackTensors>::NAMES);
    let unknown = match &columns[..] {
        [] => quote!(#k::unknown_tensor(#name, #all)),
        [(_, first), rest @ ..] => {
            let rest = rest.iter().map(|(_, column)| quote!(.or_else(|| #column)));
            quote!(#k::found_or_unknown(#name, #all, #first #(#rest)*))
        }
    };
    let lookup = if own.is_empty() {
        unknown
    } else {
        quote!(match #name { #(#arms)* _ => #unknown, })
    };
    let shares = plan.tensors.iter().filter_map(|named| {
        let (text, share) = (&named.name, expand_share(paths, named)?);
        Some((text, quote!(#text => #k::Ok(#k::Some(#share?)),)))
    });
    let (shared, shares): (Vec<_>, Vec<_>) = shares.unzip();
    let share = (!shares.is_empty()).then(|| {
        quote! {
            const SHARED: &'static [&'static #k::Str] = &[#(#shared),*];
            fn share_tensor(
                &self,
                #name: &#k::Str,
                #request: #k::Option<&#c::ExportRequest>,
            ) -> #k::SharedTensor {
                match #name { #(#shares)* _ => #k::Ok(#k::None) }
            }
        }
    });
    let set = expand_set_tensor(paths, plan);
    let records = expand_records(paths, plan);
    let mut tokens = TokenStream::new();
    if !own.is_empty() {
        tokens.extend(paths.input.implement_own(quote!(#(#accessors)*)));
    }
    tokens.extend(paths.input.implement(
        quote!(#c::DLPackTensors),
        quote! {
            const NAMES: &'static [&'static #k::Str] = #names;
            const FACTS: &'static [#k::NamedFacts] = { use #k::ProbeDefaults as _; &[#own_facts #(#column_facts),*] };
            #docs
            #[inline]
            fn describe_tensor(&self, #name: &#k::Str) -> #k::Described<'_> {
                #lookup
            }
            #records
            #share
            #set
        },
    ));
    tokens
}

/// The list of records that a structured array is made of: the only one of a struct that is no tensor itself.
fn expand_records(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let (Main::None, [], [field]) = (&plan.main, &plan.tensors[..], &plan.columns[..]) else {
        return None;
    };
    let (at, ty, member) = (field.at, field.ty, &field.member);
    let (k, at_k, this) = (&paths.k, paths.k(at), receiver_ident(at));
    let records = quote_spanned!(at=> #at_k::Table::<#ty>::records(&#this.#member));
    Some(quote! {
        const HAS_RECORDS: #k::Bool = true;
        #[inline]
        fn records(&self) -> #k::Option<#k::Records<'_>> {
            use #k::ProbeDefaults as _;
            #records
        }
    })
}

/// The doc comments of the tensors, if there are any.
fn docs_constant(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let own = plan.tensors.iter().filter_map(|named| {
        let (name, doc) = (&named.name, named.doc?);
        Some(quote!((#name, #doc)))
    });
    let own: Vec<_> = own.collect();
    if own.is_empty() && plan.columns.is_empty() {
        return None;
    }
    let columns = plan.columns.iter().map(|field| {
        let (k, ty) = (paths.k(field.at), field.ty);
        quote_spanned!(location_of(ty)=> #k::Table::<#ty>::DOCS)
    });
    let k = &paths.k;
    Some(quote! {
        const DOCS: &'static [#k::NamedDocs] = { use #k::ProbeDefaults as _; &[&[#(#own),*], #(#columns),*] };
    })
}

fn accessor_name(named: &Named<'_>) -> Ident {
    format_ident!(
        "describe_{}",
        named.name,
        span = Span::call_site().located_at(named.at)
    )
}

fn expand_accessor(paths: &Paths<'_>, named: &Named<'_>) -> TokenStream {
    let k = &paths.k;
    let body = match &named.source {
        Source::Tensor(tensor) => build_description(paths, tensor).with_borrow(Borrow::Shared),
        Source::Whole(data) => whole_source(paths, data),
    };
    let (vis, name) = (named.vis, accessor_name(named));
    let doc = format!(" Describes the tensor `{}`.", named.name);
    quote! {
        #[doc = #doc]
        #[inline]
        #vis fn #name(&self) -> #k::Described<'_> { #body }
    }
}

/// Exports a tensor with a clone of its field as the owner, if the key `owner` is set.
fn expand_share(paths: &Paths<'_>, named: &Named<'_>) -> Option<TokenStream> {
    let (Source::Tensor(tensor), true) = (&named.source, named.owner) else {
        return None;
    };
    let accessor = accessor_name(named);
    let (ty, at, field) = match &tensor.data {
        Data::Field(field) => {
            let (this, member) = (receiver_ident(field.at), &field.member);
            (
                field.ty,
                field.at,
                quote_spanned!(field.at=> &#this.#member),
            )
        }
        Data::Present(field, ty) => (*ty, location_of(ty), present_value(paths, field)),
        Data::Expr(_) | Data::Raw { .. } => return None,
    };
    let (this, request) = (receiver_ident(at), binding_ident("request", at));
    let values = quote_spanned!(at=> #field, #this.#accessor(), #request,);
    Some(Typed::new(paths, ty, at, "Probe").call("export_with_owner", values))
}

/// `set_tensor`, which copies an array into a field with the key `set`.
fn expand_set_tensor(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let Paths { c, k, .. } = paths;
    let settable = || plan.tensors.iter().filter(|named| named.set.is_some());
    let names: Vec<_> = settable().map(|named| &named.name).collect();
    if names.is_empty() {
        return None;
    }
    let here = Span::call_site();
    let (name, tensor) = (binding_ident("name", here), binding_ident("tensor", here));
    let arms = settable().map(|named| {
        let (text, made) = (&named.name, field_assignment(paths, named, &tensor));
        quote!(#text => #made,)
    });
    let copies: Vec<_> = settable()
        .filter_map(|named| field_copy(paths, named, &tensor))
        .collect();
    let copy = (!copies.is_empty()).then(|| {
        quote! {
            fn copy_to_tensor(&mut self, #name: &#k::Str, #tensor: &#c::TensorRef<'_>) -> #k::Bool {
                match #name {
                    #(#copies)*
                    _ => false,
                }
            }
        }
    });
    Some(quote! {
        const SETTABLE: &'static [&'static #k::Str] = &[#(#names),*];
        fn set_tensor(
            &mut self,
            #name: &#k::Str,
            #tensor: #k::Option<#c::Managed>,
        ) -> #k::Result<(), #c::Error> {
            match #name {
                #(#arms)*
                _ => return #k::unknown_tensor(#name, <Self as #c::DLPackTensors>::SETTABLE).map(|_| ()),
            }
            #k::Ok(())
        }
        #copy
    })
}

/// Copies an array to a field, if nothing but its elements is needed:
/// `"mask" => is_assignable(tensor, ..) && Accepts::<Vec<bool>>::replace(&mut self.mask, tensor),`
fn field_copy(paths: &Paths<'_>, named: &Named<'_>, tensor: &Ident) -> Option<TokenStream> {
    let (data, shape) = match &named.source {
        Source::Whole(data) => (data, None),
        Source::Tensor(source) if source.order.is_some() => return None,
        Source::Tensor(source) => (&source.data, source.shape.as_ref()),
    };
    let Data::Field(field) = data else {
        return None;
    };
    // `copy_to_tensor` cannot return the error of a shape; `set_tensor` can.
    if shape.is_some_and(Slot::can_fail) {
        return None;
    }
    let (k, name, ty, at) = (&paths.k, &named.name, field.ty, location_of(field.ty));
    let (shape, facts) = (
        assigned_shape(paths, shape),
        source_facts(paths, &named.source),
    );
    let (at_k, this, member) = (paths.k(at), receiver_ident(at), &field.member);
    let replace = quote_spanned!(at=> #at_k::Accepts::<#ty>::replace);
    Some(quote! {
        #name => {
            use #k::ProbeDefaults as _;
            #k::is_assignable(#tensor, #facts, #shape) && #replace(&mut #this.#member, #tensor)
        }
    })
}

/// The shape that an assigned array must have: `Some(..)`, or `None` if the annotation has none.
fn assigned_shape(paths: &Paths<'_>, shape: Option<&Slot<'_>>) -> TokenStream {
    let k = &paths.k;
    match shape {
        Some(shape) => {
            let shape = layout_value(paths, Role::Shape, shape, None);
            quote!(#k::Some(#shape))
        }
        None => quote!(#k::None),
    }
}

/// Replaces a field by an array:
/// `let tensor = check_assigned(tensor, ..)?; replace_field::<Vec<bool>>(&mut self.mask, tensor)?`
fn field_assignment(paths: &Paths<'_>, named: &Named<'_>, tensor: &Ident) -> TokenStream {
    let k = &paths.k;
    let (data, shape, order) = match &named.source {
        Source::Whole(data) => (data, None, None),
        Source::Tensor(source) => (&source.data, source.shape.as_ref(), source.order.as_ref()),
    };
    let (field, ty) = match data {
        Data::Field(field) => (*field, field.ty),
        Data::Present(field, ty) => (*field, *ty),
        Data::Expr(_) | Data::Raw { .. } => unreachable!("`set` is only allowed on a field"),
    };
    let shape = assigned_shape(paths, shape);
    let facts = source_facts(paths, &named.source);
    let fitting =
        quote!({ use #k::ProbeDefaults as _; #k::check_assigned(#tensor, #facts, #shape)? });
    let at = location_of(ty);
    let (at_k, this, member) = (paths.k(at), receiver_ident(at), &field.member);
    let (import, replace) = match order {
        Some(_) => (
            quote_spanned!(at=> #at_k::import_column_major::<#ty>),
            quote_spanned!(at=> #at_k::replace_column_major::<#ty>),
        ),
        None => (
            quote_spanned!(at=> #at_k::import_field::<#ty>),
            quote_spanned!(at=> #at_k::replace_field::<#ty>),
        ),
    };
    let name = &named.name;
    match data {
        Data::Present(..) => quote! {{
            #this.#member = match #tensor {
                #k::Some(#tensor) => #k::Some(#import(#fitting)?),
                #k::None => #k::None,
            }
        }},
        _ => quote! {{
            let #tensor = #k::require_tensor(#tensor, #name)?;
            // The shape is read before the field is borrowed, since it may be an expression with `self`.
            let #tensor = #fitting;
            #replace(&mut #this.#member, #tensor)?
        }},
    }
}

/// The facts that follow from a tensor's types, for checks at compile time.
fn source_facts(paths: &Paths<'_>, source: &Source<'_>) -> TokenStream {
    let ty = match source {
        Source::Tensor(tensor) => return type_facts(paths, tensor),
        Source::Whole(Data::Field(field)) => field.ty,
        Source::Whole(Data::Present(_, ty)) => ty,
        Source::Whole(Data::Expr(_) | Data::Raw { .. }) => {
            unreachable!("only a field is a whole tensor")
        }
    };
    let k = paths.k(location_of(ty));
    quote_spanned!(location_of(ty)=> #k::Whole::<#ty>::FACTS)
}

fn whole_source(paths: &Paths<'_>, data: &Data<'_>) -> TokenStream {
    match data {
        Data::Field(field) => {
            let typed = Typed::new(paths, field.ty, field.at, "Whole");
            typed.call_with_field("describe_field", Borrow::Shared, &field.member)
        }
        Data::Present(field, ty) => {
            let (at, present) = (location_of(ty), present_value(paths, field));
            Typed::new(paths, ty, at, "Whole")
                .call("describe_field", quote_spanned!(at=> #present,))
        }
        Data::Expr(_) | Data::Raw { .. } => unreachable!("only a field is a whole tensor"),
    }
}
