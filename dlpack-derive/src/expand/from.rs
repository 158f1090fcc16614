//! Generates `FromDLPack`: solves the same attributes for the fields, given an imported tensor.

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Type, ext::IdentExt};

use crate::expand::call::{Paths, binding_ident};
use crate::plan::claim::Claims;
use crate::plan::tensor::{Data, Order, Slot, Tensor};
use crate::plan::{Arm, Main, Plan};
use crate::syntax::attr::Value;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::expr::{self, Entry};
use crate::syntax::input::{Body, Field, Input};
use crate::syntax::krate::location_of;
use crate::syntax::role::Role;

pub(crate) fn expand_from_dlpack(
    input: &Input<'_>,
    plan: &Plan<'_>,
    cx: &Ctxt,
) -> Option<TokenStream> {
    let fields = match &input.body {
        Body::Struct(fields) => &fields[..],
        Body::Enum(_) => &[],
    };
    reject_one_way_keys(&Claims::new(&input.attrs, fields), cx);
    cx.check()?;
    let paths = Paths::new(input);
    let (body, fits) = match &plan.main {
        Main::Whole(field, _) => (
            import_delegated(&paths, fields, field),
            accepts(&paths, field),
        ),
        Main::Variants(arms) => import_variants(&paths, arms),
        Main::Tensor { tensor, .. } => {
            let solver = Solver {
                paths: &paths,
                fields,
                cx,
                solved: Vec::new(),
            };
            let fits = solver.accepts_fields(tensor);
            (solver.solve_fields(tensor)?, fits)
        }
        Main::None | Main::Via(..) => return None,
    };
    cx.check()?;
    let Paths { c, k, .. } = &paths;
    let tensor = binding_ident("tensor", Span::call_site());
    Some(input.implement(
        quote!(#c::FromDLPack),
        quote! {
            #[inline]
            fn from_dlpack(#tensor: #c::Managed) -> #k::Result<Self, #c::Error> { #body }
            #[inline]
            fn fits(#tensor: &#c::TensorRef<'_>) -> #k::Bool {
                use #k::ProbeDefaults as _;
                #fits
            }
        },
    ))
}

/// Reports keys that cannot be inverted.
fn reject_one_way_keys(claims: &Claims<'_>, cx: &Ctxt) {
    for claim in claims.iter() {
        let one_way = match claim.role {
            // `Elem` and `Dtype`: the tensor's items are not the elements of the field.
            Role::Via
            | Role::Unsafe
            | Role::Tensor
            | Role::Columns
            | Role::Stream
            | Role::Elem
            | Role::Dtype => true,
            Role::Data => claim.field.is_none(),
            Role::Order => !matches!(claim.value, Value::Text(_)),
            _ => false,
        };
        if one_way {
            let name = claim.role.name();
            let message = format!(
                "`FromDLPack` cannot read `{name}` back: remove it, or implement the trait by hand"
            );
            cx.error(claim.key, message);
        }
        let is_shape = |field: &Field<'_>| field.attr(Role::Shape).is_some();
        if claim.role == Role::Strides && claim.field.is_some_and(is_shape) {
            let message = "`FromDLPack` cannot read `shape` and `strides` back into one field: \
                           give each its own, or implement the trait by hand";
            cx.error(claim.key, message);
        }
    }
}

/// Imports the field that is the tensor; the other fields get their defaults.
fn import_delegated(paths: &Paths<'_>, fields: &[Field<'_>], tensor: &Field<'_>) -> TokenStream {
    let k = &paths.k;
    let values = import_one_of(paths, fields, tensor);
    quote!(#k::Ok(Self { #values }))
}

/// The values of all fields: `chosen` is imported, the others get their defaults.
fn import_one_of(paths: &Paths<'_>, fields: &[Field<'_>], chosen: &Field<'_>) -> TokenStream {
    let values = fields.iter().map(|field| {
        let is_chosen = core::ptr::eq(field, chosen);
        let value = if is_chosen {
            import_whole(paths, field)
        } else {
            default(paths, field)
        };
        let member = &field.member;
        quote!(#member: #value)
    });
    quote!(#(#values),*)
}

fn import_whole(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let (at, ty) = (field.at, field.ty);
    let (k, tensor) = (paths.k(at), binding_ident("tensor", at));
    quote_spanned!(at=> #k::import_field::<#ty>(#tensor)?)
}

fn default(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let (at, ty) = (field.at, field.ty);
    let k = paths.k(at);
    quote_spanned!(at=> <#ty as #k::Default>::default())
}

/// Whether the type of the field accepts `tensor`, a `&TensorRef`.
fn accepts(paths: &Paths<'_>, field: &Field<'_>) -> TokenStream {
    let (at, ty) = (field.at, field.ty);
    let (k, tensor) = (paths.k(at), binding_ident("tensor", at));
    quote_spanned!(at=> #k::Accepts::<#ty>::TENSOR(#tensor))
}

/// Creates the first variant with a field that accepts the tensor. Also returns whether there is one.
fn import_variants(paths: &Paths<'_>, arms: &[Arm<'_>]) -> (TokenStream, TokenStream) {
    let Paths { c, k, .. } = paths;
    let tensor = binding_ident("tensor", Span::call_site());
    let fields = || arms.iter().filter_map(|arm| Some((arm, arm.field?)));
    let tries = fields().map(|(arm, chosen)| {
        let variant = arm.variant.ident;
        let (at, ty) = (chosen.at, chosen.ty);
        let at_k = paths.k(at);
        let fits = quote_spanned!(at=> #at_k::Accepts::<#ty>::TENSOR(&#c::Managed::view(&#tensor)));
        let values = import_one_of(paths, &arm.variant.fields, chosen);
        quote! {
            if #fits {
                return #k::Ok(Self::#variant { #values });
            }
        }
    });
    let name = paths.input.ident.unraw().to_string();
    let variants = fields()
        .map(|(arm, field)| format!("{}({})", arm.variant.ident.unraw(), type_text(field.ty)));
    let import = quote! {
        use #k::ProbeDefaults as _;
        #(#tries)*
        #k::Err(#k::no_variant(#name, &[#(#variants),*], #tensor))
    };
    let fits: Vec<_> = fields().map(|(_, field)| accepts(paths, field)).collect();
    let fits = match &fits[..] {
        [] => quote!(false),
        fits => quote!(#(#fits)||*),
    };
    (import, fits)
}

/// A type as rustfmt would write it, if it is as simple as most: `Vec<[u8; 3]>`, `View<f32, 2>`.
fn type_text(ty: &Type) -> String {
    let tokens = ty.to_token_stream().to_string().replace(' ', "");
    tokens.replace(',', ", ").replace(';', "; ")
}

/// Finds the value of each field.
struct Solver<'a> {
    paths: &'a Paths<'a>,
    fields: &'a [Field<'a>],
    cx: &'a Ctxt,
    solved: Vec<Solved<'a>>,
}

/// A field with a known value.
struct Solved<'a> {
    field: &'a Field<'a>,
    value: TokenStream,
    /// The value of a field that is a number, as an `i64`.
    number: TokenStream,
}

impl<'a> Solver<'a> {
    fn solve_fields(mut self, tensor: &'a Tensor<'a>) -> Option<TokenStream> {
        let Data::Field(data) = tensor.data else {
            return None;
        };
        let mut checks = TokenStream::new();
        if let Some(shape) = &tensor.shape {
            self.solve_shape(shape, &mut checks);
        }
        if let Some((role, strides)) = &tensor.strides {
            match (strides, &tensor.shape) {
                // The list of sizes is checked for its length already.
                (Slot::List(..), Some(Slot::List(..))) => {}
                (Slot::List(entries, _), _) => checks.extend(self.check_rank(entries.len())),
                // The shape is the number of elements.
                (_, None) => checks.extend(self.check_rank(1)),
                _ => {}
            }
            if tensor.shape.is_none() {
                let (k, import) = (&self.paths.k, binding_ident("import", Span::call_site()));
                checks.extend(quote!(#k::Import::check_unrepeated(&#import)?;));
            }
            self.solve_strides(*role, strides, &mut checks);
        }
        if let Some((role, offset)) = &tensor.offset {
            self.solve_slot(offset, *role);
        }
        if let Some(device) = &tensor.device {
            self.solve_slot(device, Role::Device);
        }
        self.cx.check()?;
        let k = &self.paths.k;
        let (at, ty, member) = (data.at, data.ty, &data.member);
        let (at_k, given) = (self.paths.k(at), binding_ident("tensor", at));
        let made = quote_spanned!(at=> #at_k::Import::new::<#ty>(#given)?);
        let import = binding_ident("import", Span::call_site());
        let order =
            matches!(tensor.order, Some(Order::ColumnMajor)).then(|| quote!(.column_major()));
        let others = self
            .fields
            .iter()
            .filter(|field| !core::ptr::eq(*field, data))
            .map(|field| {
                let solved = self.find_solved(field);
                let value = solved
                    .map_or_else(|| default(self.paths, field), |solved| solved.value.clone());
                let member = &field.member;
                quote!(#member: #value,)
            });
        Some(quote! {
            let #import = #made #order;
            #checks
            #k::Ok(Self {
                #(#others)*
                #member: #import.into_data::<#ty>()?,
            })
        })
    }

    /// Whether dtype, rank and the constant sizes of axes of `tensor`, a `&TensorRef`, are those of the struct.
    fn accepts_fields(&self, tensor: &'a Tensor<'a>) -> TokenStream {
        let Data::Field(data) = tensor.data else {
            return quote!(false);
        };
        let mut sizes = TokenStream::new();
        let k = &self.paths.k;
        let given = binding_ident("tensor", data.at);
        let rank = match &tensor.shape {
            // With strides, the shape is the number of elements.
            None if tensor.strides.is_some() => quote!(#k::Some(1)),
            None => quote!(#k::None),
            Some(Slot::List(entries, _)) => {
                for (axis, entry) in entries.iter().enumerate() {
                    let Entry::Expr(size) = entry else { continue };
                    // `fits` cannot return the error of a size; `from_dlpack` can.
                    if !expr::reads_self(size) && !expr::can_fail(size) {
                        let axis = Literal::usize_unsuffixed(axis);
                        let size = self.constant_size(size);
                        sizes.extend(quote!(&& #k::has_size(#given, #axis, #size)));
                    }
                }
                let rank = Literal::usize_unsuffixed(entries.len());
                quote!(#k::Some(#rank))
            }
            Some(Slot::Field(field)) => self.rank_of(field),
            Some(Slot::Expr(tokens)) => match self.find_field(tokens) {
                Some(field) => self.rank_of(field),
                None => quote!(#k::None),
            },
        };
        let (at, ty) = (data.at, data.ty);
        let at_k = self.paths.k(at);
        let accepts = quote_spanned!(at=> #at_k::Accepts::<#ty>::DATA);
        quote!(#accepts(#given, #rank) #sizes)
    }

    /// The rank of a field with the shape, if its type determines it.
    fn rank_of(&self, field: &Field<'_>) -> TokenStream {
        let (at, ty) = (field.at, field.ty);
        let k = self.paths.k(at);
        quote_spanned!(at=> #k::RankOf::<#ty>::RANK)
    }

    fn solve_shape(&mut self, shape: &'a Slot<'a>, checks: &mut TokenStream) {
        let Slot::List(entries, _) = shape else {
            self.solve_slot(shape, Role::Shape);
            return;
        };
        let (k, import) = (&self.paths.k, binding_ident("import", Span::call_site()));
        checks.extend(self.check_rank(entries.len()));
        for (axis, entry) in entries.iter().enumerate() {
            let axis = Literal::usize_unsuffixed(axis);
            let Entry::Expr(tokens) = entry else { continue };
            if let Some(field) = self.find_field(tokens) {
                if self.find_solved(field).is_some() {
                    // In `[n, n]`, the size of the second axis must equal that of the first.
                    let first = &self.first_axis(entries, tokens);
                    let first = quote!(#k::Import::axis_size::<_>(&#import, #first)?);
                    checks.extend(quote!(#k::Import::check_size(&#import, #axis, #first)?;));
                } else {
                    self.set(field, "axis_size", &[axis]);
                }
            } else if expr::reads_self(tokens) {
                self.report_unsolvable(tokens, "use a field, a number without `self` or `_`");
            } else {
                let size = self.constant_size(tokens);
                checks.extend(quote!(#k::Import::check_size(&#import, #axis, #size)?;));
            }
        }
    }

    /// The check that the tensor has this many axes, without those of its elements.
    fn check_rank(&self, rank: usize) -> TokenStream {
        let rank = Literal::usize_unsuffixed(rank);
        let (k, import) = (&self.paths.k, binding_ident("import", Span::call_site()));
        quote!(#k::Import::check_rank(&#import, #rank)?;)
    }

    /// The size of an axis that is the same for every value of the type.
    fn constant_size(&self, tokens: &TokenStream) -> TokenStream {
        let at = location_of(tokens);
        let (k, size) = (self.paths.k(at), expr::with_integer_type(tokens));
        quote_spanned!(at=> #k::constant_size(#size))
    }

    fn first_axis(&self, entries: &[Entry], tokens: &TokenStream) -> Literal {
        let name = expr::plain_member(tokens);
        let first = entries.iter().position(|entry| match entry {
            Entry::Expr(tokens) => expr::plain_member(tokens) == name,
            Entry::Hole(_) => false,
        });
        Literal::usize_unsuffixed(first.unwrap_or_default())
    }

    fn solve_strides(&mut self, role: Role, strides: &'a Slot<'a>, checks: &mut TokenStream) {
        let (all, one) = match role {
            Role::ByteStrides => ("byte_strides", "byte_stride"),
            _ => ("strides", "stride"),
        };
        let Slot::List(entries, _) = strides else {
            self.solve_slot(strides, role);
            return;
        };
        let k = &self.paths.k;
        let import = binding_ident("import", Span::call_site());
        let mut given = Vec::new();
        let mut all_read = true;
        for (axis, entry) in entries.iter().enumerate() {
            let axis = Literal::usize_unsuffixed(axis);
            let method = Ident::new(one, Span::call_site());
            let mut value = quote!(#k::Some(#k::Import::#method(&#import, #axis)?));
            match entry {
                Entry::Hole(_) => {
                    all_read = false;
                    value = quote!(#k::None);
                }
                Entry::Expr(tokens) => match self.find_field(tokens) {
                    Some(field) => match self.find_solved(field) {
                        Some(Solved { number, .. }) => {
                            all_read = false;
                            value = quote!(#k::Some(#number));
                        }
                        None => self.set(field, one, &[axis]),
                    },
                    None => self.report_unsolvable(tokens, "use a field or `_`"),
                },
            }
            given.push(value);
        }
        if !all_read {
            // The export computes a stride of `_`, and one that equals another field. The tensor must have the same.
            let check = Ident::new(&format!("check_{all}"), Span::call_site());
            checks.extend(quote!(#k::Import::#check(&#import, &[#(#given),*])?;));
        }
    }

    /// Reads a field that stands for the whole value of a key, on the struct or on the field itself.
    fn solve_slot(&mut self, slot: &'a Slot<'a>, role: Role) {
        let (field, at) = match slot {
            Slot::Field(field) => {
                let key = field.attr(role).map(|attr| &attr.key);
                (Some(*field), key.to_token_stream())
            }
            Slot::Expr(tokens) => (self.find_field(tokens), tokens.clone()),
            Slot::List(..) => return,
        };
        match field {
            Some(field) if self.find_solved(field).is_none() => self.set(field, role.name(), &[]),
            Some(_) => self.report_unsolvable(&at, "use a field that no other key names"),
            None => self.report_unsolvable(&at, "use a field"),
        }
    }

    /// The field that an expression names, if it can be a number: the one with the elements is none.
    fn find_field(&self, tokens: &TokenStream) -> Option<&'a Field<'a>> {
        let name = expr::plain_member(tokens)?;
        let mut fields = self.fields.iter();
        let named = fields.find(|field| field.member.to_token_stream().to_string() == name)?;
        named.attr(Role::Data).is_none().then_some(named)
    }

    fn set(&mut self, field: &'a Field<'a>, method: &str, arguments: &[Literal]) {
        let (at, ty) = (field.at, field.ty);
        let (k, import) = (self.paths.k(at), binding_ident("import", at));
        let method = Ident::new(method, at);
        let value = quote_spanned!(at=> #k::Import::#method::<#ty>(&#import #(, #arguments)*)?);
        let number =
            quote_spanned!(at=> #k::Import::#method::<#k::I64>(&#import #(, #arguments)*)?);
        self.solved.push(Solved {
            field,
            value,
            number,
        });
    }

    fn find_solved(&self, field: &Field<'_>) -> Option<&Solved<'a>> {
        self.solved
            .iter()
            .find(|solved| core::ptr::eq(solved.field, field))
    }

    fn report_unsolvable(&self, tokens: &TokenStream, instead: &str) {
        let message = format!("`FromDLPack` cannot solve this for the fields it needs: {instead}");
        // The error points to the user's tokens, after the `self.` that was added.
        let trees: Vec<_> = tokens.clone().into_iter().collect();
        let first = if names_field(&trees) { 2 } else { 0 };
        let error = match (trees.get(first), trees.last()) {
            (Some(first), Some(last)) => {
                let tokens: TokenStream = [first.clone(), last.clone()].into_iter().collect();
                syn::Error::new_spanned(tokens, message)
            }
            _ => syn::Error::new_spanned(tokens, message),
        };
        self.cx.push(error);
    }
}

/// Whether the expression starts with a field, `self.rows ..`, and not with a method call.
fn names_field(trees: &[TokenTree]) -> bool {
    match trees {
        [
            TokenTree::Ident(this),
            TokenTree::Punct(_),
            TokenTree::Ident(_),
            after @ ..,
        ] => this == "self" && !matches!(after, [TokenTree::Group(_), ..]),
        _ => false,
    }
}
