//! Generates the calls for tensors and their fields, each with the span of the user's tokens, so that rustc's errors point
//! there.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::plan::tensor::{Access, Data, Order, Policy, Slot, Tensor};
use crate::syntax::expr::{Entry, is_place, receiver_ident, with_integer_type};
use crate::syntax::input::{Field, Input, Member};
use crate::syntax::krate::{At, end_location_of, location_of, parenthesize};
use crate::syntax::role::Role;

/// The paths that generated code uses: the crate (`c`) and its private module (`k`).
pub(crate) struct Paths<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) c: At<'a>,
    pub(crate) k: At<'a>,
}

/// How a method borrows the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrow {
    Shared,
    Exclusive,
}

/// A variable or parameter of generated code, with the user's location. It would hide a function of the user's with its name, and a
/// constant with its name would be a pattern, so it has a prefix.
pub(crate) fn binding_ident(name: &str, at: Span) -> Ident {
    let at = Span::call_site().located_at(at);
    Ident::new(&format!("__{name}"), at)
}

/// The parameter of the closures in [`Paths::extras_constant`], with the user's span.
pub(crate) fn closure_argument(at: Span) -> Ident {
    binding_ident("this", at)
}

/// The arguments `request, other` of the closure in [`Paths::share_call`], with the user's span.
pub(crate) fn share_arguments(at: Span) -> TokenStream {
    let (request, other) = (binding_ident("request", at), binding_ident("other", at));
    quote_spanned!(at=> #request, #other)
}

impl<'a> Paths<'a> {
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let here = Span::call_site();
        Self {
            input,
            c: input.krate.root(here),
            k: input.krate.private(here),
        }
    }

    pub(crate) const fn k(&self, at: Span) -> At<'a> {
        self.input.krate.private(at)
    }

    pub(crate) fn describe_method(&self, borrow: Borrow, body: &TokenStream) -> TokenStream {
        let inline = quote!(#[inline]);
        self.describe_method_with(&inline, borrow, body)
    }

    /// [`describe_method`](Self::describe_method) with another `inline` attribute.
    pub(crate) fn describe_method_with(
        &self,
        inline: &TokenStream,
        borrow: Borrow,
        body: &TokenStream,
    ) -> TokenStream {
        let k = &self.k;
        let (name, this) = match borrow {
            Borrow::Shared => (quote!(describe), quote!(&self)),
            Borrow::Exclusive => (quote!(describe_mut), quote!(&mut self)),
        };
        quote! {
            #inline
            fn #name(#this) -> #k::Described<'_> { #body }
        }
    }

    /// The constant `EXTRAS`: the facts that follow from the types, and these calls.
    pub(crate) fn extras_constant(&self, facts: &TokenStream, calls: &TokenStream) -> TokenStream {
        let k = &self.k;
        quote!(const EXTRAS: #k::Extras<Self> = #k::of_types::<Self>(#facts) #calls;)
    }

    /// The call that registers how the value is exported without keeping the struct alive.
    pub(crate) fn share_call(&self, body: &TokenStream) -> TokenStream {
        let here = Span::call_site();
        let (this, arguments) = (closure_argument(here), share_arguments(here));
        quote!(.share(|#this, #arguments| #body))
    }
}

/// The parts of a call that depends on the traits of a type: its generic arguments, and the route that selects the trait.
pub(crate) struct Typed<'a> {
    at: Span,
    k: At<'a>,
    arguments: TokenStream,
    route: TokenStream,
}

impl<'a> Typed<'a> {
    pub(crate) fn new(paths: &Paths<'a>, ty: &Type, at: Span, probe: &str) -> Self {
        // All tokens have the span of the user's type. None of them is resolved by the hygiene of the expansion.
        let own = ty.span();
        let (k, probe, inferred) = (
            paths.k(own),
            Ident::new(probe, own),
            inferred_type(paths, ty),
        );
        Self {
            at,
            k: paths.k(at),
            arguments: quote_spanned!(own=> #ty, #inferred),
            route: quote_spanned!(own=> #k::#probe::<#ty>::NEW.__route()),
        }
    }

    /// The call, with these arguments before the route.
    pub(crate) fn call(&self, function: &str, values: impl ToTokens) -> TokenStream {
        let Self {
            at,
            k,
            arguments,
            route,
        } = self;
        let function = Ident::new(function, *at);
        quote_spanned!(*at=> #k::#function::<#arguments>(#values #route))
    }

    /// The call with a borrow of a field.
    pub(crate) fn call_with_field(
        &self,
        function: &str,
        borrow: Borrow,
        member: &Member<'_>,
    ) -> TokenStream {
        let at = self.at;
        let this = receiver_ident(at);
        let exclusive = borrow == Borrow::Exclusive;
        let exclusive = exclusive.then(|| quote_spanned!(at=> mut));
        self.call(function, quote_spanned!(at=> &#exclusive #this.#member,))
    }
}

/// A type argument for the compiler to infer, `Inferred<_>`. If a bound of the call fails, rustc points to the argument with
/// that bound. The tokens of this argument span all of the user's tokens: rustc underlines from the first to the last token if
/// both have the same hygiene.
fn inferred_type(paths: &Paths<'_>, tokens: &impl ToTokens) -> TokenStream {
    let mut trees = tokens.to_token_stream().into_iter();
    let first = trees
        .next()
        .map_or_else(Span::call_site, |tree| tree.span());
    let last = trees.last().map_or(first, |tree| tree.span());
    let (k, end) = (paths.k(first), quote_spanned!(last=> >));
    quote_spanned!(first=> #k::Inferred<_ #end)
}

/// `Parts::new().shape(..) .. .describe(..)`, without the choice of how the value is borrowed.
pub(crate) struct Description<'a> {
    pub(crate) parts: TokenStream,
    /// The loan of the data.
    data: Box<dyn Fn(Borrow) -> TokenStream + 'a>,
    /// Whether the tensor has an offset, a data type or strides of its own, for which core has a faster description.
    is_placed: bool,
    /// The span of the end of the call to `describe`.
    to: Span,
}

impl Description<'_> {
    pub(crate) fn with_borrow(&self, borrow: Borrow) -> TokenStream {
        let describe = match borrow {
            Borrow::Shared if self.is_placed => quote!(describe_placed),
            Borrow::Shared => quote!(describe),
            Borrow::Exclusive => quote!(describe_mut),
        };
        let (parts, data) = (&self.parts, parenthesize((self.data)(borrow), self.to));
        quote!(#parts.#describe #data)
    }
}

pub(crate) fn build_description<'a>(paths: &Paths<'a>, tensor: &'a Tensor<'a>) -> Description<'a> {
    // If an expression borrows from a temporary, rustc's error spans from here to `describe`.
    let (from, to) = match &tensor.data {
        Data::Expr(expr) => (location_of(expr), end_location_of(expr)),
        _ => (Span::call_site(), Span::call_site()),
    };
    let c = paths.input.krate.root(from);
    let mut chain = quote_spanned!(from=> #c::Parts::new());
    let mut call = |method: &str, argument: TokenStream| {
        let method = Ident::new(method, Span::call_site());
        chain.extend(quote!(.#method(#argument)));
    };
    // Only with strides: an early return for each list keeps the compiler from writing both lists to memory. A shape alone stays
    // in registers without it, and compiles faster.
    let check = tensor.strides.is_some().then(|| quote!(.check()?));
    if let Some(slot) = &tensor.shape {
        let shape = layout_value(paths, Role::Shape, slot, None);
        call("shape", quote!(#shape #check));
    }
    if let Some((role, slot)) = &tensor.strides {
        let rank = rank_type(paths, tensor.shape.as_ref());
        let strides = layout_value(paths, *role, slot, Some(rank));
        call(role.name(), quote!(#strides #check));
    }
    match &tensor.order {
        Some(Order::ColumnMajor) => call("column_major", TokenStream::new()),
        Some(Order::By(slot)) => call("order", layout_value(paths, Role::Order, slot, None)),
        None => {}
    }
    if let Some((role, slot)) = &tensor.offset {
        call(role.name(), layout_value(paths, *role, slot, None));
    }
    for (role, slot) in [
        (Role::Dtype, &tensor.dtype),
        (Role::Device, &tensor.device),
        (Role::Stream, &tensor.stream),
    ] {
        if let Some(slot) = slot {
            call(role.name(), layout_value(paths, role, slot, None));
        }
    }
    if let Some(elem) = tensor.elem {
        chain.extend(quote_spanned!(location_of(elem)=> .elem::<#elem>()));
    }
    chain.extend(access_call(tensor.access));
    chain.extend(policy_calls(&tensor.policy));
    Description {
        parts: chain,
        data: data_loan(paths, &tensor.data),
        is_placed: tensor.strides.is_some()
            || tensor.offset.is_some()
            || tensor.dtype.is_some()
            || tensor.elem.is_some(),
        to,
    }
}

pub(crate) fn access_call(access: Access) -> TokenStream {
    match access {
        Access::Natural => TokenStream::new(),
        Access::ReadOnly => quote!(.read_only()),
        Access::Writable => quote!(.writable()),
    }
}

pub(crate) fn policy_calls(policy: &Policy) -> TokenStream {
    let legacy = policy.legacy_refuse.then(|| quote!(.legacy_refuse()));
    let release = policy
        .release_immediate
        .then(|| quote!(.release_immediate()));
    quote!(#legacy #release)
}

/// The loan of the data. The whole call has the span of the user's type, for rustc's errors.
fn data_loan<'a>(paths: &Paths<'a>, data: &'a Data<'a>) -> Box<dyn Fn(Borrow) -> TokenStream + 'a> {
    let loan = match data {
        Data::Field(field) => {
            let typed = Typed::new(paths, field.ty, field.at, "Probe");
            return Box::new(move |borrow| {
                let function = match borrow {
                    Borrow::Shared => "lend_field",
                    Borrow::Exclusive => "lend_field_mut",
                };
                typed.call_with_field(function, borrow, &field.member)
            });
        }
        Data::Present(field, ty) => {
            let (at, present) = (location_of(ty), present_value(paths, field));
            Typed::new(paths, ty, at, "Probe").call("lend_field", quote_spanned!(at=> #present,))
        }
        Data::Expr(expr) => call_with_expression(paths, expr, "lend_expression"),
        Data::Raw { token, data, len } => {
            let k = &paths.k;
            let here = Span::call_site();
            let (data_name, len_name) = (binding_ident("data", here), binding_ident("len", here));
            let (data_at, len_at) = (location_of(data), location_of(len));
            let (data_k, len_k) = (paths.k(data_at), paths.k(len_at));
            let len = with_integer_type(len);
            let data = quote_spanned!(data_at=> #data_k::address(#data));
            let len = quote_spanned!(len_at=> #len_k::len(#len)?);
            // The `unsafe` and its braces are the user's own tokens: the user makes the promise, and lints on it are the user's
            // too.
            let mut call = Group::new(Delimiter::Brace, quote!(#k::raw(#data_name, #len_name)));
            call.set_span(token.span());
            quote! {
                match (#data, #len) {
                    (#data_name, #len_name) => #token #call
                }
            }
        }
    };
    Box::new(move |_| loan.clone())
}

/// A call with an expression; errors about its bounds underline the whole expression.
pub(crate) fn call_with_expression(
    paths: &Paths<'_>,
    expr: &TokenStream,
    function: &str,
) -> TokenStream {
    let (at, inferred) = (location_of(expr), inferred_type(paths, expr));
    let (k, function) = (paths.k(at), Ident::new(function, at));
    quote_spanned!(at=> #k::#function::<#inferred>(#expr))
}

pub(crate) fn present_value(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let (k, this) = (paths.k(field.at), receiver_ident(field.at));
    let (member, name) = (&field.member, field.name());
    quote_spanned!(field.at=> #k::require_present(&#this.#member, #name)?)
}

/// The call for one property of the layout, such as `shape::<[usize; 3]>(&self.dims)`.
pub(crate) fn layout_value(
    paths: &Paths<'_>,
    role: Role,
    slot: &Slot<'_>,
    rank: Option<TokenStream>,
) -> TokenStream {
    let function = match role {
        Role::ByteStrides => Role::Strides,
        Role::ByteOffset => Role::Offset,
        role => role,
    };
    let rank = rank.map(|rank| quote!(, #rank));
    match slot {
        Slot::Field(field) => {
            let (ty, member, at) = (field.ty, &field.member, field.at);
            let (k, this, function) = (
                paths.k(at),
                receiver_ident(at),
                Ident::new(function.name(), at),
            );
            quote_spanned!(at=> #k::#function::<#ty #rank>(&#this.#member))
        }
        // The stream must be borrowed from what keeps it alive. A temporary would be dropped at the end of the statement.
        Slot::Expr(expr) if role == Role::Stream && !is_place(expr) => {
            let at = location_of(expr);
            let k = paths.k(at);
            quote_spanned!(at=> #k::stream_expression::<_>(#expr))
        }
        Slot::Expr(expr) => {
            let at = location_of(expr);
            let k = paths.k(at);
            let function = Ident::new(function.name(), at);
            let value = with_integer_type(expr);
            quote_spanned!(at=> #k::#function::<_ #rank>(&(#value)))
        }
        Slot::List(entries, _) => {
            let k = &paths.k;
            let function = match role {
                Role::Shape => quote!(shape_list),
                _ => quote!(strides_list),
            };
            let entries = entries.iter().map(|entry| list_entry(paths, entry));
            quote!(#k::#function([#(#entries),*]))
        }
    }
}

fn list_entry(paths: &Paths<'_>, entry: &Entry) -> TokenStream {
    match entry {
        Entry::Hole(hole) => {
            let at = location_of(hole);
            let k = paths.k(at);
            quote_spanned!(at=> #k::None)
        }
        Entry::Expr(expr) => {
            let at = location_of(expr);
            let (k, number) = (paths.k(at), with_integer_type(expr));
            quote_spanned!(at=> #k::list_number(#number))
        }
    }
}

/// The type that represents the shape where its number of axes matters.
pub(crate) fn rank_type(paths: &Paths<'_>, shape: Option<&Slot<'_>>) -> TokenStream {
    match shape {
        Some(Slot::Field(field)) => {
            let ty = field.ty;
            quote!(#ty)
        }
        Some(Slot::List(entries, _)) => {
            let len = Literal::usize_unsuffixed(entries.len());
            quote!([i64; #len])
        }
        Some(Slot::Expr(_)) | None => {
            let k = &paths.k;
            quote!([#k::I64])
        }
    }
}

/// The facts that follow from the types, for checks at compile time; needs `ProbeDefaults` in scope.
pub(crate) fn type_facts(paths: &Paths<'_>, tensor: &Tensor<'_>) -> TokenStream {
    let k = &paths.k;
    let data = match &tensor.data {
        Data::Field(Field { ty, .. }) | Data::Present(_, ty) => {
            let at = location_of(ty);
            let k = paths.k(at);
            quote_spanned!(at=> #k::Probe::<#ty>::FACTS)
        }
        Data::Expr(_) => quote!(#k::Facts::UNKNOWN),
        // A raw pointer is one to host memory, unless the key `device` is given.
        Data::Raw { .. } => quote!(#k::Facts::HOST),
    };
    facts_over(paths, tensor, data)
}

/// The facts of a tensor, given those of its data.
pub(crate) fn facts_over(paths: &Paths<'_>, tensor: &Tensor<'_>, data: TokenStream) -> TokenStream {
    let k = &paths.k;
    let mut facts = data;
    if let Some(shape) = &tensor.shape {
        let ty = rank_type(paths, Some(shape));
        facts.extend(quote!(.rank(#k::RankOf::<#ty>::RANK)));
    }
    if let Some(elem) = tensor.elem {
        facts.extend(quote!(.elem(#k::ElementOf::<#elem>::FACTS)));
    }
    if tensor.dtype.is_some() {
        facts.extend(quote!(.dynamic_dtype()));
    }
    if tensor.device.is_some() {
        facts.extend(quote!(.dynamic_device()));
    }
    facts.extend(access_call(tensor.access));
    facts
}
