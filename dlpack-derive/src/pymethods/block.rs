//! The `impl` block below `#[dlpack_pymethods]`, read as tokens: syn would need its feature `full` to parse the methods, which
//! are passed on unchanged.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use quote::quote;

use crate::syntax::expr::{contains_word, is_punct, is_word};

/// The item that the attribute is applied to.
pub(crate) enum Item {
    Impl(Block),
    Other {
        /// The keyword: `struct`, `fn` and so on.
        word: Option<Ident>,
        /// The name, for a type without generic parameters.
        name: Option<Ident>,
        item: TokenStream,
    },
}

/// `#[..] impl Header { body }`
pub(crate) struct Block {
    attrs: Vec<Attr>,
    /// `impl`, with `unsafe` or `default` before it.
    start: Vec<TokenTree>,
    /// The generics `<..>` after `impl`.
    pub(crate) generics: TokenStream,
    /// The trait, and `for` after it.
    pub(crate) of: TokenStream,
    pub(crate) self_ty: TokenStream,
    bounds: TokenStream,
    body: Group,
}

/// A method that gets, sets or deletes an attribute in Python.
pub(crate) struct Accessor {
    /// In Python.
    pub(crate) name: String,
    pub(crate) function: Ident,
    /// The conditions of `#[cfg(..)]` and `#[cfg_attr(.., getter)]`: it is an accessor if all of them are true.
    pub(crate) conditions: Vec<TokenStream>,
}

/// The attributes of accessors, each with the prefix that PyO3 removes from the name of the function.
const ACCESSORS: [(&str, &str); 3] = [
    ("getter", "get_"),
    ("setter", "set_"),
    ("deleter", "delete_"),
];

/// `#[..]`
struct Attr {
    hash: TokenTree,
    list: Group,
}

impl Item {
    pub(crate) fn from_tokens(item: TokenStream) -> Self {
        let mut trees: Vec<_> = item.clone().into_iter().collect();
        // A `macro_rules` fragment `$item` is wrapped in a group without delimiters.
        while let Some(TokenTree::Group(group)) = trees.last() {
            if group.delimiter() != Delimiter::None {
                break;
            }
            let inner = group.stream();
            trees.pop();
            trees.extend(inner);
        }
        Block::read_block(trees).map_or_else(|| read_other_item(item), Self::Impl)
    }
}

/// Reads the first keyword of an item, and the name after it.
fn read_other_item(item: TokenStream) -> Item {
    const WORDS: [&str; 10] = [
        "struct",
        "enum",
        "union",
        "fn",
        "mod",
        "trait",
        "type",
        "static",
        "use",
        "macro_rules",
    ];
    let mut trees = item.clone().into_iter();
    let word = trees.find_map(|tree| match tree {
        TokenTree::Ident(word) if WORDS.iter().any(|known| word == known) => Some(word),
        _ => None,
    });
    let defines = word
        .as_ref()
        .is_some_and(|word| WORDS[..3].iter().any(|known| word == known));
    let name = match (trees.next(), trees.next()) {
        (Some(TokenTree::Ident(name)), after)
            if defines && !after.as_ref().is_some_and(|tree| is_punct(tree, '<')) =>
        {
            Some(name)
        }
        _ => None,
    };
    Item::Other { word, name, item }
}

impl Block {
    fn read_block(trees: Vec<TokenTree>) -> Option<Self> {
        let mut trees = trees;
        let Some(TokenTree::Group(body)) = trees.pop() else {
            return None;
        };
        let mut rest = trees.into_iter().peekable();
        let mut attrs = Vec::new();
        while let Some(hash) = rest.next_if(|tree| is_punct(tree, '#')) {
            let Some(TokenTree::Group(list)) = rest.next() else {
                return None;
            };
            attrs.push(Attr { hash, list });
        }
        let mut start = Vec::new();
        while start.last().is_none_or(|tree| !is_word(tree, "impl")) {
            start.push(rest.next_if(|tree| {
                ["unsafe", "default", "impl"]
                    .iter()
                    .any(|word| is_word(tree, word))
            })?);
        }
        let mut generics = Vec::new();
        if rest.peek().is_some_and(|tree| is_punct(tree, '<')) {
            let mut open = 0;
            for tree in rest.by_ref() {
                // The `>` of `->` closes no bracket.
                let arrow = generics.last().is_some_and(|last| is_punct(last, '-'));
                open += i32::from(is_punct(&tree, '<')) - i32::from(is_punct(&tree, '>') && !arrow);
                generics.push(tree);
                if open == 0 {
                    break;
                }
            }
        }
        let mut header: Vec<_> = rest.collect();
        let bounds = header.iter().position(|tree| is_word(tree, "where"));
        let bounds = header.split_off(bounds.unwrap_or(header.len()));
        // `for<'a>` belongs to a type.
        let of = (0..header.len()).find(|&at| {
            is_word(&header[at], "for")
                && !header.get(at + 1).is_some_and(|tree| is_punct(tree, '<'))
        });
        let self_ty = header.split_off(of.map_or(0, |at| at + 1));
        Some(Self {
            attrs,
            start,
            generics: generics.into_iter().collect(),
            of: header.into_iter().collect(),
            self_ty: self_ty.into_iter().collect(),
            bounds: bounds.into_iter().collect(),
            body,
        })
    }

    /// Whether this is an inherent impl of a type without generic parameters.
    pub(crate) fn is_class(&self) -> bool {
        self.generics.is_empty() && self.of.is_empty()
    }

    pub(crate) fn has_attr(&self, name: &str) -> bool {
        self.attrs
            .iter()
            .any(|attr| find_attr_name(&attr.list.stream(), name).is_some())
    }

    /// Removes the attributes of this name; returns the name in the first of them.
    pub(crate) fn remove_attr(&mut self, name: &str) -> Option<Ident> {
        let mut removed = None;
        self.attrs.retain(|attr| {
            let found = find_attr_name(&attr.list.stream(), name);
            let keep = found.is_none();
            removed = removed.take().or(found);
            keep
        });
        removed
    }

    /// The name of a method or constant in the block that is called `name`, in Rust or in Python.
    pub(crate) fn find_name(&self, name: &str) -> Option<TokenTree> {
        let trees: Vec<_> = self.body.stream().into_iter().collect();
        trees.windows(2).find_map(|pair| match pair {
            [TokenTree::Ident(word), TokenTree::Ident(own)]
                if (word == "fn" || word == "const") && own == name =>
            {
                Some(own.clone().into())
            }
            [hash, TokenTree::Group(list)] if is_punct(hash, '#') => find_python_name(list, name),
            _ => None,
        })
    }

    /// Whether the block defines a getter for this Python attribute.
    pub(crate) fn defines_getter(&self, name: &str) -> bool {
        let says = |tree| {
            let TokenTree::Group(attr) = tree else {
                return false;
            };
            let mut trees = attr.stream().into_iter();
            let is_getter = trees.next().is_some_and(|tree| is_word(&tree, "getter"));
            let text = trees.next().map(|tree| tree.to_string());
            let text = text.unwrap_or_default();
            is_getter && text.trim_matches(['(', ')', '"']).trim_start_matches("r#") == name
        };
        self.find_name(name).is_some()
            || self.find_name(&format!("get_{name}")).is_some()
            || self.body.stream().into_iter().any(says)
    }

    /// The accessors of the block.
    pub(crate) fn accessors(&self) -> Vec<Accessor> {
        let mut attrs: Vec<Group> = Vec::new();
        let mut found = Vec::new();
        let mut trees = self.body.stream().into_iter().peekable();
        while let Some(tree) = trees.next() {
            match (&tree, trees.peek()) {
                (hash, Some(TokenTree::Group(list))) if is_punct(hash, '#') => {
                    attrs.push(list.clone())
                }
                (TokenTree::Ident(word), Some(TokenTree::Ident(own))) if word == "fn" => {
                    found.extend(python_name_of_accessor(&attrs, own).map(|name| Accessor {
                        name,
                        function: own.clone(),
                        conditions: conditions_of_accessor(&attrs),
                    }));
                }
                // The body of a method, or the end of another item.
                (TokenTree::Group(body), _) if body.delimiter() == Delimiter::Brace => {
                    attrs.clear()
                }
                (end, _) if is_punct(end, ';') => attrs.clear(),
                _ => {}
            }
        }
        found
    }

    /// The `&` of each result type such as `Numpy<&Vec<f32>>`.
    pub(crate) fn borrowed_results(&self) -> Vec<TokenTree> {
        let mut found = Vec::new();
        find_borrowed_results(self.body.stream(), false, &mut found);
        found
    }

    /// Removes the attributes that only `#[pymethods]` understands; returns whether there were any.
    pub(crate) fn remove_inert(&mut self) -> bool {
        let (body, found) = without_inert(&self.body, true);
        self.body = body;
        found
    }

    /// Makes PyO3's macro use `path` for PyO3, unless the user has set a path, or `path` cannot be written in a string.
    pub(crate) fn find_pyo3(&mut self, path: &TokenStream) {
        let path = path.to_string();
        if self.has_attr("pyo3") || self.has_crate() || path.contains('$') {
            return;
        }
        self.attrs.push(Attr {
            hash: Punct::new('#', Spacing::Alone).into(),
            list: Group::new(Delimiter::Bracket, quote!(pyo3(crate = #path))),
        });
    }

    /// Whether the block has `#[pymethods(crate = "..")]`.
    fn has_crate(&self) -> bool {
        self.attrs.iter().any(|attr| {
            let list = attr.list.stream();
            find_attr_name(&list, "pymethods").is_some() && contains_word(&list, "crate")
        })
    }

    /// The block with items before the user's own.
    pub(crate) fn with_items(&self, items: TokenStream) -> TokenStream {
        let own: Vec<_> = self.body.stream().into_iter().collect();
        // Inner attributes `#![..]` come first.
        let mut at = 0;
        while let [hash, bang, _, ..] = &own[at..] {
            if !is_punct(hash, '#') || !is_punct(bang, '!') {
                break;
            }
            at += 3;
        }
        let (inner, own) = own.split_at(at);
        let stream = inner
            .iter()
            .cloned()
            .chain(items)
            .chain(own.iter().cloned())
            .collect();
        let mut body = Group::new(Delimiter::Brace, stream);
        body.set_span(self.body.span());
        let attrs = self
            .attrs
            .iter()
            .flat_map(|attr| [attr.hash.clone(), attr.list.clone().into()]);
        attrs
            .chain(self.start.iter().cloned())
            .chain(self.generics.clone())
            .chain(self.of.clone())
            .chain(self.self_ty.clone())
            .chain(self.bounds.clone())
            .chain([TokenTree::from(body)])
            .collect()
    }
}

/// Finds `Numpy<&` and the like between `->` and the body of a method.
fn find_borrowed_results(tokens: TokenStream, in_result: bool, found: &mut Vec<TokenTree>) {
    const ARRAYS: [&str; 6] = ["Numpy", "Torch", "Jax", "Cupy", "Like", "Exported"];
    let trees: Vec<_> = tokens.into_iter().collect();
    let mut in_result = in_result;
    for (at, tree) in trees.iter().enumerate() {
        match (tree, &trees[at + 1..]) {
            (dash, [head, ..]) if is_punct(dash, '-') && is_punct(head, '>') => in_result = true,
            (TokenTree::Group(body), _) if body.delimiter() == Delimiter::Brace => {
                in_result = false;
            }
            (TokenTree::Group(tuple), _) if in_result => {
                find_borrowed_results(tuple.stream(), true, found);
            }
            (name, [open, borrow, rest @ ..])
                if in_result
                    && ARRAYS.iter().any(|array| is_word(name, array))
                    && is_punct(open, '<')
                    && is_punct(borrow, '&')
                    && !matches!(rest, [_, lifetime, ..] if is_word(lifetime, "static")) =>
            {
                found.push(borrow.clone());
            }
            _ => {}
        }
    }
}

/// The last segment of an attribute's path, if it is `name`; also looks into `cfg_attr`, as in `cfg_attr(feature = "python",
/// pyo3::pymethods)`.
fn find_attr_name(attr: &TokenStream, name: &str) -> Option<Ident> {
    let mut last = None;
    let mut trees = attr.clone().into_iter();
    for tree in trees.by_ref() {
        match tree {
            TokenTree::Ident(ident) => last = Some(ident),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            TokenTree::Group(group) if last.as_ref().is_some_and(|last| last == "cfg_attr") => {
                let trees: Vec<_> = group.stream().into_iter().collect();
                let attrs = trees.split(|tree| is_punct(tree, ',')).skip(1);
                return attrs
                    .filter_map(|attr| find_attr_name(&attr.iter().cloned().collect(), name))
                    .next();
            }
            _ => break,
        }
    }
    last.filter(|last| last == name)
}

/// The prefix that PyO3 removes from the name of a function with this attribute, if it makes the function an accessor.
fn prefix_of_accessor(attr: &Group) -> Option<&'static str> {
    ACCESSORS
        .iter()
        .find(|(name, _)| find_attr_name(&attr.stream(), name).is_some())
        .map(|(_, prefix)| *prefix)
}

/// The name in Python of a function with these attributes, if it is an accessor.
fn python_name_of_accessor(attrs: &[Group], function: &Ident) -> Option<String> {
    let (accessor, prefix) = attrs
        .iter()
        .find_map(|attr| Some((attr, prefix_of_accessor(attr)?)))?;
    let text_of = |list: &Group| {
        let text = list
            .stream()
            .into_iter()
            .last()
            .map(|tree| tree.to_string());
        text.map(|text| text.trim_matches('"').trim_start_matches("r#").to_owned())
    };
    let argument = accessor.stream().into_iter().find_map(|tree| match tree {
        TokenTree::Group(list) => text_of(&list),
        _ => None,
    });
    let renamed = attrs.iter().find_map(|attr| {
        find_attr_name(&attr.stream(), "pyo3")?;
        attr.stream().into_iter().find_map(|tree| match tree {
            TokenTree::Group(list) => {
                let named = list.stream().into_iter().next();
                let is_name = named.is_some_and(|tree| is_word(&tree, "name"));
                is_name.then(|| text_of(&list)).flatten()
            }
            _ => None,
        })
    });
    let function = function.to_string();
    let function = function.trim_start_matches("r#");
    let own = || function.strip_prefix(prefix).unwrap_or(function).to_owned();
    Some(argument.or(renamed).unwrap_or_else(own))
}

fn conditions_of_accessor(attrs: &[Group]) -> Vec<TokenStream> {
    let condition = |attr: &Group| {
        let mut trees = attr.stream().into_iter();
        let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(list))) =
            (trees.next(), trees.next())
        else {
            return None;
        };
        let list = list.stream();
        if name == "cfg" {
            return Some(list);
        }
        let makes_accessor = name == "cfg_attr" && prefix_of_accessor(attr).is_some();
        let comma = |tree: &TokenTree| !is_punct(tree, ',');
        makes_accessor.then(|| list.into_iter().take_while(comma).collect())
    };
    attrs.iter().filter_map(condition).collect()
}

/// The string in `#[pyo3(name = "..")]`, if it is `name`.
fn find_python_name(attr: &Group, name: &str) -> Option<TokenTree> {
    find_attr_name(&attr.stream(), "pyo3")?;
    let list = attr.stream().into_iter().find_map(|tree| match tree {
        TokenTree::Group(list) => Some(list.stream()),
        _ => None,
    });
    let trees: Vec<_> = list?.into_iter().collect();
    trees.windows(3).find_map(|window| match window {
        [key, eq, TokenTree::Literal(text)]
            if is_word(key, "name")
                && is_punct(eq, '=')
                && text.to_string() == format!("{name:?}") =>
        {
            Some(text.clone().into())
        }
        _ => None,
    })
}

fn without_inert(group: &Group, items: bool) -> (Group, bool) {
    const INERT: [&str; 9] = [
        "classattr",
        "classmethod",
        "deleter",
        "getter",
        "init",
        "new",
        "pyo3",
        "setter",
        "staticmethod",
    ];
    let mut kept = Vec::new();
    let mut found = false;
    for tree in group.stream() {
        match &tree {
            TokenTree::Group(list)
                if kept.last().is_some_and(|last| is_punct(last, '#'))
                    && INERT
                        .iter()
                        .any(|name| find_attr_name(&list.stream(), name).is_some()) =>
            {
                found = true;
                kept.pop();
                continue;
            }
            // The parameters of a method.
            TokenTree::Group(list) if items && list.delimiter() == Delimiter::Parenthesis => {
                let (list, inside) = without_inert(list, false);
                found |= inside;
                kept.push(list.into());
                continue;
            }
            _ => {}
        }
        kept.push(tree);
    }
    let mut without = Group::new(group.delimiter(), kept.into_iter().collect());
    without.set_span(group.span());
    (without, found)
}
