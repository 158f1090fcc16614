//! Requests the inventories of a class and its records from the macros that their derives define; see `expand::inventory`.
//!
//! ```text
//! Batch! { [to] (options) impl .. } ──▶ to! { [to] {names, [Row]} (options) impl .. }
//!   ──▶ Row! { [to] {names} (options) impl .. } ──▶ to! { [to] {columns} {names} (options) impl .. }
//! ```

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Token};

/// What the derive knows about a class.
#[derive(Default)]
pub(crate) struct Inventory {
    /// The object itself is a tensor.
    pub(crate) tensor: bool,
    /// The object is a list of records, which lends a buffer.
    pub(crate) records: bool,
    /// The tensors that are attributes.
    pub(crate) named: Vec<Attribute>,
}

/// An attribute of a class that is a tensor.
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) doc: String,
    /// Python code may assign an array to it.
    pub(crate) settable: bool,
}

impl Attribute {
    /// Reads `"name", "doc"`, followed by `, set` if the attribute is settable.
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse::<LitStr>()?.value();
        input.parse::<Token![,]>()?;
        let doc = input.parse::<LitStr>()?.value();
        let settable = !input.is_empty();
        if settable {
            input.parse::<Token![,]>()?;
            input.parse::<Ident>()?;
        }
        let attribute = Self {
            name,
            doc,
            settable,
        };
        Ok(attribute)
    }
}

impl ToTokens for Attribute {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            name,
            doc,
            settable,
        } = self;
        let set = settable.then(|| quote!(, set));
        tokens.extend(quote!((#name, #doc #set)));
    }
}

/// Calls the macro at `path`, which calls `to` with the inventory of the type.
pub(crate) fn request_inventory(
    path: &impl ToTokens,
    to: &impl ToTokens,
    options: &TokenStream,
    item: &TokenStream,
) -> TokenStream {
    quote!(#path! { [#to] (#options) #item })
}

/// The arguments of the callback.
pub(crate) enum Answer {
    /// An inventory of records is still missing: the macro call to expand to.
    Ask(TokenStream),
    Complete {
        inventory: Inventory,
        options: TokenStream,
        item: TokenStream,
    },
}

impl Answer {
    pub(crate) fn read(tokens: TokenStream) -> Option<Self> {
        let mut trees = tokens.into_iter();
        let to = group_stream(trees.next()?, Delimiter::Bracket)?;
        let (mut inventory, mut rows) = (Inventory::default(), Vec::new());
        let options = loop {
            let tree = trees.next()?;
            match group_stream(tree.clone(), Delimiter::Brace) {
                Some(entries) => read_entries(entries, &mut inventory, &mut rows)?,
                None => break group_stream(tree, Delimiter::Parenthesis)?,
            }
        };
        let item = trees.collect();
        let Some(row) = rows.pop() else {
            return Some(Self::Complete {
                inventory,
                options,
                item,
            });
        };
        let tensor = inventory.tensor.then(|| quote!(tensor));
        let records = inventory.records.then(|| quote!(records));
        let named = &inventory.named;
        Some(Self::Ask(quote! {
            #row! { [#to] { #tensor #records #(#named)* #([#rows])* } (#options) #item }
        }))
    }
}

/// Reads the entries of an inventory: `tensor`, `records`, `("name", "doc")`, `("name", "doc", set)` and `[path::of::Rows]`.
fn read_entries(
    entries: TokenStream,
    inventory: &mut Inventory,
    rows: &mut Vec<TokenStream>,
) -> Option<()> {
    for entry in entries {
        match entry {
            TokenTree::Group(list) if list.delimiter() == Delimiter::Bracket => {
                rows.push(list.stream());
            }
            TokenTree::Group(pair) => {
                let attribute = Attribute::parse.parse2(pair.stream()).ok()?;
                inventory.named.push(attribute);
            }
            TokenTree::Ident(word) if word == "records" => inventory.records = true,
            _ => inventory.tensor = true,
        }
    }
    Some(())
}

fn group_stream(tree: TokenTree, delimiter: Delimiter) -> Option<TokenStream> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(Group::stream(&group)),
        _ => None,
    }
}
