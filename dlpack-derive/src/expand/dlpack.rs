//! Generates `DLPack`: a few calls of the core, without logic.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;

use crate::expand::call::{
    Borrow, Paths, Typed, binding_ident, build_description, call_with_expression, closure_argument,
    facts_over, policy_calls, share_arguments, type_facts,
};
use crate::expand::class;
use crate::expand::tensors;
use crate::plan::tensor::{Access, Data, Slot, Tensor};
use crate::plan::{Arm, FieldKind, Main, Plan};
use crate::syntax::expr::receiver_ident;
use crate::syntax::input::{Field, Input};
use crate::syntax::krate::{end_location_of, location_of, parenthesize};
use crate::syntax::role::Role;

pub(crate) fn expand_dlpack(input: &Input<'_>, plan: &Plan<'_>) -> TokenStream {
    let paths = Paths::new(input);
    let mut tokens = main(&paths, &plan.main);
    if !plan.tensors.is_empty() || !plan.columns.is_empty() {
        tokens.extend(tensors::expand_tensors(&paths, plan));
    }
    tokens.extend(class::expand_methods_check(&paths, plan));
    tokens
}

fn main(paths: &Paths<'_>, main: &Main<'_>) -> TokenStream {
    let items = match main {
        Main::None => return TokenStream::new(),
        Main::Tensor { tensor, owner } => main_tensor(paths, tensor, *owner),
        Main::Whole(field, kind) => whole_field(paths, field, *kind),
        Main::Variants(arms) => expand_variants(paths, arms),
        Main::Via(_, policy) => {
            let (Paths { c, k, .. }, policy) = (paths, policy_calls(policy));
            let parts = quote!(#c::Parts::new() #policy);
            let here = Span::call_site();
            let (this, arguments) = (closure_argument(here), share_arguments(here));
            let share = quote!(#k::share_expression(#this, #parts, #arguments));
            let share = paths.share_call(&share);
            let mut items = paths.extras_constant(&facts_given(paths), &share);
            let described = described_given(paths, &parts);
            items.extend(paths.describe_method(Borrow::Shared, &described));
            items
        }
    };
    let c = &paths.c;
    let mut tokens = paths.input.implement_sent(quote!(#c::DLPack), items);
    let expression = match main {
        Main::Via(expr, _) => Some((expr, "via_expression")),
        Main::Tensor { tensor, .. } => match &tensor.data {
            Data::Expr(expr) => Some((expr, "data_expression")),
            _ => None,
        },
        _ => None,
    };
    tokens.extend(expression.map(|(expr, function)| expression_of(paths, expr, function)));
    tokens
}

/// `impl Expression`: the user's expression as the body of a method.
fn expression_of(paths: &Paths<'_>, expr: &TokenStream, function: &str) -> TokenStream {
    let Paths { c, k, .. } = paths;
    let value = call_with_expression(paths, expr, function);
    // If the expression borrows from a temporary, rustc's error spans from here to the expression's end.
    let at_k = paths.k(location_of(expr));
    let given = parenthesize(quote!(#value.into_value()), end_location_of(expr));
    let value = quote_spanned!(location_of(expr)=> #at_k::Ok #given);
    let items = quote! {
        #[inline]
        fn evaluate(&self) -> #k::Result<impl #k::ExpressionValue<'_>, #c::Error> {
            use #k::RejectedExpression as _;
            #value
        }
    };
    paths.input.implement_sent(quote!(#k::Expression), items)
}

/// The facts that follow from the expression's type.
fn facts_given(paths: &Paths<'_>) -> TokenStream {
    let k = &paths.k;
    quote!(#k::expression_facts::<Self>())
}

/// The description of the expression's tensor.
fn described_given(paths: &Paths<'_>, parts: &TokenStream) -> TokenStream {
    let k = &paths.k;
    quote!(#k::describe_expression(self, #parts))
}

fn main_tensor(paths: &Paths<'_>, tensor: &Tensor<'_>, owner: Option<&Field<'_>>) -> TokenStream {
    let Paths { c, k, .. } = paths;
    let is_expression = matches!(tensor.data, Data::Expr(_));
    let facts = if is_expression {
        facts_over(paths, tensor, facts_given(paths))
    } else {
        type_facts(paths, tensor)
    };
    let facts = quote!({ use #k::ProbeDefaults as _; #facts });
    let mut extras = TokenStream::new();
    if tensor.access == Access::Writable {
        extras.extend(quote!(.exclusive()));
    }
    let stored_layout = stored_layout(paths, tensor);
    // For these, a binding calls `describe` in two places, so the compiler would not inline it.
    let inline = if stored_layout.is_some() || owner.is_some() {
        quote!(#[inline(always)])
    } else {
        quote!(#[inline])
    };
    extras.extend(stored_layout);
    let description = build_description(paths, tensor);
    if let Some(owner) = owner {
        let (at, this, member) = (owner.at, closure_argument(owner.at), &owner.member);
        let arguments = share_arguments(at);
        let values = quote_spanned!(at=> &#this.#member, #c::DLPack::describe(#this), #arguments,);
        let share = Typed::new(paths, owner.ty, at, "Probe").call("share_with_owner", values);
        extras.extend(paths.share_call(&share));
    }
    let mut items = paths.extras_constant(&facts, &extras);
    let describe = if is_expression {
        described_given(paths, &description.parts)
    } else {
        description.with_borrow(Borrow::Shared)
    };
    items.extend(paths.describe_method_with(&inline, Borrow::Shared, &describe));
    if let (Some(field), true) = (tensor.data.field(), tensor.access != Access::ReadOnly) {
        let mut body = description.with_borrow(Borrow::Exclusive);
        if tensor.access == Access::Writable {
            let typed = Typed::new(paths, field.ty, field.at, "Probe");
            let check = typed.call("require_writable", TokenStream::new());
            body = quote!(#check; #body);
        }
        items.extend(paths.describe_method(Borrow::Exclusive, &body));
    }
    items
}

/// Shape and strides as they are stored, if one field has both: the core checks whether its type is a `Layout`.
fn stored_layout(paths: &Paths<'_>, tensor: &Tensor<'_>) -> Option<TokenStream> {
    let (Some(Slot::Field(shape)), Some((Role::Strides, Slot::Field(strides)))) =
        (&tensor.shape, &tensor.strides)
    else {
        return None;
    };
    if !core::ptr::eq(*shape, *strides) {
        return None;
    }
    let k = &paths.k;
    let (ty, at, member) = (shape.ty, shape.at, &shape.member);
    let (at_k, this, own) = (
        paths.k(at),
        closure_argument(at),
        closure_argument(Span::call_site()),
    );
    let lists = quote_spanned!(at=> #at_k::LentLists::<#ty>);
    Some(quote! {
        .lists(
            { use #k::ProbeDefaults as _; #lists::LIE_THERE },
            |#own| { use #k::ProbeDefaults as _; #lists::of(&#this.#member) },
        )
    })
}

fn whole_field(paths: &Paths<'_>, field: &Field<'_>, kind: FieldKind) -> TokenStream {
    let k = &paths.k;
    let ty = field.ty;
    let facts = quote!({ use #k::ProbeDefaults as _; #k::Whole::<#ty>::FACTS });
    let (at, member) = (field.at, &field.member);
    let typed = Typed::new(paths, ty, at, "Whole");
    let describe = match kind {
        FieldKind::Lone => "describe_field",
        FieldKind::Data => "describe_data",
    };
    let methods = [
        (Borrow::Shared, describe),
        (Borrow::Exclusive, "describe_field_mut"),
    ]
    .map(|(borrow, function)| {
        paths.describe_method(borrow, &typed.call_with_field(function, borrow, member))
    });
    let (this, arguments) = (closure_argument(at), share_arguments(at));
    let share = typed.call(
        "share_field",
        quote_spanned!(at=> &#this.#member, #arguments,),
    );
    let share = paths.share_call(&share);
    let exclusive = quote!({ use #k::ProbeDefaults as _; #k::Whole::<#ty>::EXCLUSIVE });
    let extras = paths.extras_constant(&facts, &quote!(.exclusive_as(#exclusive) #share));
    quote!(#extras #(#methods)*)
}

fn expand_variants(paths: &Paths<'_>, arms: &[Arm<'_>]) -> TokenStream {
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
            let (at, member) = (field.at, &field.member);
            let rest = (variant.fields.len() > 1).then(|| quote!(, ..));
            let inner = binding_ident("field", at);
            let values = quote_spanned!(at=> #inner, #request);
            let call = Typed::new(paths, field.ty, at, "Whole").call(function, values);
            quote!(Self::#ident { #member: #inner #rest } => #call,)
        });
        quote!(match #this { #(#arms)* })
    };
    let refuse = |variant: &str| quote!(#k::reject_skipped(#name, #variant));
    let here = Span::call_site();
    let methods = [
        paths.describe_method(
            Borrow::Shared,
            &each(receiver_ident(here), "describe_field", None, &refuse),
        ),
        paths.describe_method(
            Borrow::Exclusive,
            &each(receiver_ident(here), "describe_field_mut", None, &refuse),
        ),
    ];
    let arguments = share_arguments(here);
    let share = paths.share_call(&each(
        closure_argument(here),
        "share_field",
        Some(quote!(#arguments,)),
        &|_| quote!(#k::None),
    ));
    let facts = arms.iter().filter_map(|arm| {
        let Field { ty, at, .. } = arm.field?;
        let k = paths.k(*at);
        Some(quote_spanned!(*at=> #k::Whole::<#ty>::FACTS))
    });
    let facts = quote!({ use #k::ProbeDefaults as _; #k::Facts::of_one(&[#(#facts),*]) });
    let extras = paths.extras_constant(&facts, &share);
    quote!(#extras #(#methods)*)
}
