//! Further tensors: an accessor for each, and `DLPackTensors` over all of their names.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::expand::call::{Borrow, Paths, Typed, description, facts, present, value};
use crate::plan::tensor::Data;
use crate::plan::{Main, Named, Plan, Source};
use crate::syntax::expr::receiver;
use crate::syntax::krate::site;
use crate::syntax::role::Role;

pub(crate) fn expand(paths: &Paths<'_>, plan: &Plan<'_>) -> TokenStream {
    let Paths { c, k, .. } = paths;
    let accessors = plan.tensors.iter().map(|named| accessor(paths, named));
    let own: Vec<_> = plan.tensors.iter().map(|named| &named.name).collect();
    let arms = plan.tensors.iter().map(|named| {
        let (name, accessor) = (&named.name, accessor_name(named));
        quote!(#name => self.#accessor(),)
    });
    let columns: Vec<_> = plan
        .columns
        .iter()
        .map(|field| {
            let (at, ty) = (field.at, field.ty);
            let k = paths.k(at);
            let names = quote_spanned!(at=> #k::Table::<#ty>::NAMES);
            let (this, member) = (receiver(at), &field.member);
            (
                names,
                quote_spanned!(at=> #k::column::<#ty>(&#this.#member, name)),
            )
        })
        .collect();
    let names = match (&own[..], &columns[..]) {
        (own, []) => quote!(&[#(#own),*]),
        ([], [(names, _)]) => quote!({ use #k::Unsaid as _; #names }),
        (own, columns) => {
            let own = (!own.is_empty()).then(|| quote!(&[#(#own),*],));
            let columns = columns.iter().map(|(names, _)| names);
            let groups = quote!(&[#own #(#columns),*]);
            let at = site(plan.columns[0].ty);
            let at_k = paths.k(at);
            // Names that are there twice are found when this is evaluated.
            let joined = quote_spanned!(at=> #at_k::names::<{ #at_k::count(#groups) }>(#groups));
            quote!({ use #k::Unsaid as _; &#joined })
        }
    };
    let own_facts = plan.tensors.iter().map(|named| {
        let (name, facts) = (&named.name, source_facts(paths, &named.source));
        quote!((#name, #facts.shared()))
    });
    let own_facts = (!own.is_empty()).then(|| quote!(&[#(#own_facts),*],));
    let column_facts = plan.columns.iter().map(|field| {
        let (k, ty) = (paths.k(field.at), field.ty);
        quote_spanned!(site(ty)=> #k::Table::<#ty>::COLUMNS)
    });
    let docs = docs(paths, plan);
    let all = quote!(<Self as #c::DLPackTensors>::NAMES);
    let unknown = match &columns[..] {
        [] => quote!(#k::unknown_tensor(name, #all)),
        [(_, first), rest @ ..] => {
            let rest = rest.iter().map(|(_, column)| quote!(.or_else(|| #column)));
            quote!(#k::find(name, #all, #first #(#rest)*))
        }
    };
    let lookup = if own.is_empty() {
        unknown
    } else {
        quote!(match name { #(#arms)* _ => #unknown, })
    };
    let shares = plan.tensors.iter().filter_map(|named| {
        let (name, share) = (&named.name, share(paths, named)?);
        Some(quote!(#name => #k::Ok(#k::Some(#share?)),))
    });
    let shares: TokenStream = shares.collect();
    let share = (!shares.is_empty()).then(|| {
        quote! {
            fn share_tensor(
                &self,
                name: &#k::Str,
                request: #k::Option<&#c::ExportRequest>,
            ) -> #k::SharedTensor {
                match name { #shares _ => #k::Ok(#k::None) }
            }
        }
    });
    let set = set(paths, plan);
    let records = records(paths, plan);
    let mut tokens = TokenStream::new();
    if !own.is_empty() {
        tokens.extend(paths.input.implement_own(quote!(#(#accessors)*)));
    }
    tokens.extend(paths.input.implement(
        quote!(#c::DLPackTensors),
        quote! {
            const NAMES: &'static [&'static #k::Str] = #names;
            const FACTS: &'static [#k::NamedFacts] = { use #k::Unsaid as _; &[#own_facts #(#column_facts),*] };
            #docs
            #[inline]
            fn describe_tensor(&self, name: &#k::Str) -> #k::Described<'_> {
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
fn records(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let (Main::None, [], [field]) = (&plan.main, &plan.tensors[..], &plan.columns[..]) else {
        return None;
    };
    let (at, ty, member) = (field.at, field.ty, &field.member);
    let (k, at_k, this) = (&paths.k, paths.k(at), receiver(at));
    let records = quote_spanned!(at=> #at_k::Table::<#ty>::records(&#this.#member));
    Some(quote! {
        const HAS_RECORDS: #k::Bool = true;
        #[inline]
        fn records(&self) -> #k::Option<#k::Records<'_>> {
            use #k::Unsaid as _;
            #records
        }
    })
}

/// What is written about tensors, if anything can be.
fn docs(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
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
        quote_spanned!(site(ty)=> #k::Table::<#ty>::DOCS)
    });
    let k = &paths.k;
    Some(quote! {
        const DOCS: &'static [#k::NamedDocs] = { use #k::Unsaid as _; &[&[#(#own),*], #(#columns),*] };
    })
}

fn accessor_name(named: &Named<'_>) -> Ident {
    format_ident!(
        "describe_{}",
        named.name,
        span = Span::call_site().located_at(named.at)
    )
}

fn accessor(paths: &Paths<'_>, named: &Named<'_>) -> TokenStream {
    let k = &paths.k;
    let body = match &named.source {
        Source::Tensor(tensor) => description(paths, tensor).by(Borrow::Shared),
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

/// The export of a tensor by a clone of its field, where the key `owner` says so.
fn share(paths: &Paths<'_>, named: &Named<'_>) -> Option<TokenStream> {
    let (Source::Tensor(tensor), true) = (&named.source, named.owner) else {
        return None;
    };
    let accessor = accessor_name(named);
    let (ty, at, field) = match &tensor.data {
        Data::Field(field) => {
            let (this, member) = (receiver(field.at), &field.member);
            (
                field.ty,
                field.at,
                quote_spanned!(field.at=> &#this.#member),
            )
        }
        Data::Present(field, ty) => (*ty, site(ty), present(paths, field)),
        Data::Expr(_) | Data::Raw { .. } => return None,
    };
    let this = receiver(at);
    let values = quote_spanned!(at=> #field, #this.#accessor(), request,);
    Some(Typed::new(paths, ty, at, "Probe").call("share", values))
}

/// What puts the elements of an array into a field, where the key `set` says that it may.
fn set(paths: &Paths<'_>, plan: &Plan<'_>) -> Option<TokenStream> {
    let Paths { c, k, .. } = paths;
    let settable = || plan.tensors.iter().filter(|named| named.set.is_some());
    let names: Vec<_> = settable().map(|named| &named.name).collect();
    if names.is_empty() {
        return None;
    }
    let arms = settable().map(|named| {
        let (name, made) = (&named.name, made(paths, named));
        quote!(#name => #made,)
    });
    Some(quote! {
        const SETTABLE: &'static [&'static #k::Str] = &[#(#names),*];
        fn set_tensor(
            &mut self,
            name: &#k::Str,
            tensor: #k::Option<#c::Managed>,
        ) -> #k::Result<(), #c::Error> {
            match name {
                #(#arms)*
                _ => return #k::unknown_tensor(name, <Self as #c::DLPackTensors>::SETTABLE).map(|_| ()),
            }
            #k::Ok(())
        }
    })
}

/// A field, and what is made for it of an array: `self.mask = import_whole::<Vec<bool>>(fitting(tensor, ..)?)?`
fn made(paths: &Paths<'_>, named: &Named<'_>) -> TokenStream {
    let k = &paths.k;
    let (data, shape, order) = match &named.source {
        Source::Whole(data) => (data, None, None),
        Source::Tensor(tensor) => (&tensor.data, tensor.shape.as_ref(), tensor.order.as_ref()),
    };
    let (field, ty) = match data {
        Data::Field(field) => (*field, field.ty),
        Data::Present(field, ty) => (*field, *ty),
        Data::Expr(_) | Data::Raw { .. } => unreachable!("`set` stands on a field alone"),
    };
    let shape = match shape {
        Some(shape) => {
            let shape = value(paths, Role::Shape, shape, None);
            quote!(#k::Some(#shape))
        }
        None => quote!(#k::None),
    };
    let facts = source_facts(paths, &named.source);
    let fitting = quote!({ use #k::Unsaid as _; #k::fitting(tensor, #facts, #shape)? });
    let at = site(ty);
    let (at_k, this, member) = (paths.k(at), receiver(at), &field.member);
    let function = match order {
        Some(_) => quote_spanned!(at=> import_column_major),
        None => quote_spanned!(at=> import_whole),
    };
    let made = quote_spanned!(at=> #at_k::#function::<#ty>(#fitting)?);
    let name = &named.name;
    match data {
        Data::Present(..) => quote! {{
            #this.#member = match tensor {
                #k::Some(tensor) => #k::Some(#made),
                #k::None => #k::None,
            }
        }},
        _ => quote! {{
            let tensor = #k::given(tensor, #name)?;
            #this.#member = #made
        }},
    }
}

/// What the types say of a tensor, for checks at compile time.
fn source_facts(paths: &Paths<'_>, source: &Source<'_>) -> TokenStream {
    let ty = match source {
        Source::Tensor(tensor) => return facts(paths, tensor),
        Source::Whole(Data::Field(field)) => field.ty,
        Source::Whole(Data::Present(_, ty)) => ty,
        Source::Whole(Data::Expr(_) | Data::Raw { .. }) => {
            unreachable!("only a field is a whole tensor")
        }
    };
    let k = paths.k(site(ty));
    quote_spanned!(site(ty)=> #k::Whole::<#ty>::FACTS)
}

fn whole_source(paths: &Paths<'_>, data: &Data<'_>) -> TokenStream {
    match data {
        Data::Field(field) => {
            let typed = Typed::new(paths, field.ty, field.at, "Whole");
            typed.lend("whole", Borrow::Shared, &field.member)
        }
        Data::Present(field, ty) => {
            let (at, present) = (site(ty), present(paths, field));
            Typed::new(paths, ty, at, "Whole").call("whole", quote_spanned!(at=> #present,))
        }
        Data::Expr(_) | Data::Raw { .. } => unreachable!("only a field is a whole tensor"),
    }
}
