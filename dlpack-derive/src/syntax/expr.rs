//! The user's expressions: where each ends, bracket lists, and the names of fields in scope.
//!
//! Expressions stay tokens: parsing them would need syn's `full` feature, and rustc's errors about them are better.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::quote;
use syn::LitInt;
use syn::parse::ParseStream;

/// One entry of a bracket list.
pub(crate) enum Entry {
    /// `_`, to be inferred.
    Hole(Ident),
    Expr(TokenStream),
}

/// The tokens up to the next comma that separates two keys.
pub(crate) fn take_expression(input: ParseStream<'_>) -> TokenStream {
    let mut angles = Angles::default();
    let mut taken = TokenStream::new();
    while !input.is_empty() {
        let fork = input.fork();
        let Ok(token) = fork.parse::<TokenTree>() else {
            break;
        };
        if angles.ends_at(&token) {
            break;
        }
        let token: TokenTree = input.parse().unwrap_or(token);
        taken.extend([token]);
    }
    taken
}

/// The entries of `[a, _, b]`; `None` for anything else, including `[a; n]`.
///
/// # Errors
///
/// An empty entry is reported at its comma.
pub(crate) fn parse_list(tokens: &TokenStream) -> syn::Result<Option<Vec<Entry>>> {
    let mut trees = tokens.clone().into_iter();
    let (Some(TokenTree::Group(group)), None) = (trees.next(), trees.next()) else {
        return Ok(None);
    };
    if group.delimiter() != Delimiter::Bracket || is_repetition(&group) {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let mut angles = Angles::default();
    let mut entry = TokenStream::new();
    for token in group.stream() {
        if !angles.ends_at(&token) {
            entry.extend([token]);
        } else if entry.is_empty() {
            return Err(syn::Error::new(
                token.span(),
                "expected an expression or `_` before this comma",
            ));
        } else {
            entries.push(Entry::new(core::mem::take(&mut entry)));
            angles = Angles::default();
        }
    }
    if !entry.is_empty() {
        entries.push(Entry::new(entry));
    }
    Ok(Some(entries))
}

fn is_repetition(group: &Group) -> bool {
    group
        .stream()
        .into_iter()
        .any(|token| is_punct(&token, ';'))
}

impl Entry {
    fn new(tokens: TokenStream) -> Self {
        match as_hole(&tokens) {
            Some(hole) => Self::Hole(hole),
            None => Self::Expr(tokens),
        }
    }
}

/// The identifier of a bare `_`.
pub(crate) fn as_hole(tokens: &TokenStream) -> Option<Ident> {
    match single_token(tokens) {
        Some(TokenTree::Ident(ident)) if ident == "_" => Some(ident),
        _ => None,
    }
}

/// The only token of a stream; `None` if there are more.
pub(crate) fn single_token(tokens: &TokenStream) -> Option<TokenTree> {
    let mut trees = tokens.clone().into_iter();
    trees.next().filter(|_| trees.next().is_none())
}

/// Gives an integer literal without a suffix, such as `3` or `-3`, the type `i64`: where any integer fits, rustc would take it for
/// an `i32`, in which large sizes overflow.
pub(crate) fn with_integer_type(tokens: &TokenStream) -> TokenStream {
    let mut trees = trees_of(tokens);
    let is_signed = matches!(&trees[..], [sign, _] if is_punct(sign, '-'));
    let integer = match trees.last() {
        Some(TokenTree::Literal(literal)) if trees.len() == 1 || is_signed => {
            syn::parse_str::<LitInt>(&literal.to_string()).ok()
        }
        _ => None,
    };
    if let (Some(integer), Some(last)) = (integer, trees.last_mut()) {
        if integer.suffix().is_empty() {
            let typed = LitInt::new(&format!("{integer}_i64"), last.span());
            *last = TokenTree::Literal(typed.token());
        }
    }
    trees.into_iter().collect()
}

pub(crate) fn trees_of(tokens: &TokenStream) -> Vec<TokenTree> {
    tokens.clone().into_iter().collect()
}

/// Whether an expression is a slice of host memory by its tokens, as `&self.items[..]`.
pub(crate) fn is_slice(tokens: &TokenStream) -> bool {
    let trees = trees_of(tokens);
    match (trees.first(), trees.last()) {
        (Some(first), Some(TokenTree::Group(index))) => {
            is_punct(first, '&')
                && index.delimiter() == Delimiter::Bracket
                && index
                    .stream()
                    .into_iter()
                    .any(|token| is_punct(&token, '.'))
        }
        _ => false,
    }
}

/// Whether an expression is an unsized slice by its tokens, as `self.items[..]`.
pub(crate) fn is_unborrowed_slice(tokens: &TokenStream) -> bool {
    let trees = trees_of(tokens);
    let plain = |tree: &TokenTree| {
        matches!(tree, TokenTree::Ident(_) | TokenTree::Group(_)) || is_punct(tree, '.')
    };
    match trees.split_last() {
        Some((TokenTree::Group(index), before)) => {
            index.delimiter() == Delimiter::Bracket
                && !before.is_empty()
                && before.iter().all(plain)
                && is_range(index)
        }
        _ => false,
    }
}

/// Whether an index is a range by its tokens.
fn is_range(index: &Group) -> bool {
    let trees: Vec<_> = index.stream().into_iter().collect();
    let pair = |pair: &[TokenTree]| match pair {
        [TokenTree::Punct(first), last] => is_joint(first, '.') && is_punct(last, '.'),
        _ => false,
    };
    trees.windows(2).any(pair)
}

/// Whether an expression is a field, or a field of a field, and so on.
pub(crate) fn is_place(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().all(|tree| match tree {
        TokenTree::Ident(_) | TokenTree::Literal(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == '.',
        TokenTree::Group(_) => false,
    })
}

/// Brings the names of fields into scope: `rows` becomes `self.rows`.
pub(crate) fn bind_fields(tokens: TokenStream, fields: &[&Ident]) -> TokenStream {
    bind_trees(tokens, fields, false)
}

/// The names in a stream; `literal` if it is the inside of a struct literal, where `rows` becomes `rows: self.rows`.
fn bind_trees(tokens: TokenStream, fields: &[&Ident], literal: bool) -> TokenStream {
    let trees: Vec<_> = tokens.into_iter().collect();
    let mut bound = Vec::new();
    let mut received = false;
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => {
                let literal =
                    group.delimiter() == Delimiter::Brace && ends_with_struct(&trees[..at]);
                let inner = bind_trees(group.stream(), fields, literal);
                let mut inner = Group::new(group.delimiter(), inner);
                inner.set_span(group.span());
                bound.push(TokenTree::Group(inner));
            }
            TokenTree::Ident(ident) if ident == "self" => {
                received = true;
                bound.push(TokenTree::Ident(receiver_ident(ident.span())));
            }
            TokenTree::Ident(ident)
                if fields.contains(&ident)
                    && !follows_path(&trees[..at])
                    && !names_else(&trees[at + 1..]) =>
            {
                received = true;
                let receiver = receiver_ident(ident.span());
                if literal && is_entry(&trees, at) {
                    bound.extend(quote!(#ident:));
                }
                bound.extend(quote!(#receiver.#ident));
            }
            other => bound.push(other.clone()),
        }
    }
    if received {
        adopt_hygiene(&mut bound);
    }
    bound.into_iter().collect()
}

/// Whether a token is all that stands between two commas.
fn is_entry(trees: &[TokenTree], at: usize) -> bool {
    let is_comma = |token: &TokenTree| is_punct(token, ',');
    trees[..at].last().is_none_or(is_comma) && trees.get(at + 1).is_none_or(is_comma)
}

/// Whether braces after these tokens belong to a struct literal: after a path, but not in the head of an `if` or a loop, where
/// no literal may stand, and not after the result type of a closure.
fn ends_with_struct(before: &[TokenTree]) -> bool {
    let is_one_of =
        |token: &TokenTree, words: &[&str]| words.iter().any(|word| is_word(token, word));
    let start = before
        .iter()
        .rposition(|token| is_punct(token, ';') || is_punct(token, ','));
    let statement = &before[start.map_or(0, |at| at + 1)..];
    let path = statement
        .iter()
        .rposition(|token| !matches!(token, TokenTree::Ident(_)) && !is_punct(token, ':'));
    let is_result = path.is_some_and(|at| {
        at > 0 && is_punct(&statement[at], '>') && is_punct(&statement[at - 1], '-')
    });
    let is_path = matches!(before.last(), Some(TokenTree::Ident(_)))
        && !before.last().is_some_and(|last| {
            is_one_of(
                last,
                &[
                    "else", "loop", "unsafe", "async", "move", "const", "return", "break",
                ],
            )
        });
    let heads = ["if", "while", "match", "for"];
    is_path && !is_result && !statement.iter().any(|token| is_one_of(token, &heads))
}

/// Whether an expression with bound fields reads the value. The `self` of `self::ROWS` is a module.
pub(crate) fn reads_self(tokens: &TokenStream) -> bool {
    let trees = trees_of(tokens);
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Group(group) => reads_self(&group.stream()),
        tree => is_word(tree, "self") && !is_path_separator(&trees[at + 1..]),
    })
}

/// Whether an expression can leave the function around it with an error.
pub(crate) fn can_fail(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|tree| match &tree {
        TokenTree::Group(group) => can_fail(&group.stream()),
        tree => is_punct(tree, '?') || is_word(tree, "return"),
    })
}

/// Whether the tokens start with `::`.
fn is_path_separator(trees: &[TokenTree]) -> bool {
    matches!(trees, [TokenTree::Punct(first), last, ..] if is_joint(first, ':') && is_punct(last, ':'))
}

/// Whether a word is among the tokens, also inside of groups.
pub(crate) fn contains_word(tokens: &TokenStream, word: &str) -> bool {
    tokens.clone().into_iter().any(|tree| match &tree {
        TokenTree::Group(group) => contains_word(&group.stream(), word),
        tree => is_word(tree, word),
    })
}

/// Gives the tokens that are not names of values the hygiene of the `self` before them: rustc underlines an expression from its
/// first to its last token only if both have the same hygiene.
fn adopt_hygiene(trees: &mut [TokenTree]) {
    let mut after_dot = false;
    for tree in trees {
        let is_name = matches!(tree, TokenTree::Ident(_)) && !after_dot;
        after_dot = is_punct(tree, '.');
        if !is_name {
            tree.set_span(Span::call_site().located_at(tree.span()));
        }
    }
}

/// `self` with the hygiene of the generated method and the user's location: a `self` from a `macro_rules` would not resolve.
pub(crate) fn receiver_ident(at: Span) -> Ident {
    Ident::new("self", Span::call_site().located_at(at))
}

/// Whether a name after these tokens is a member, a path segment or a lifetime. After `..` it is a value.
pub(crate) fn follows_path(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Punct(first), TokenTree::Punct(last)] if last.as_char() == '.' => {
            !is_joint(first, '.')
        }
        [.., last] if is_punct(last, '.') || is_punct(last, '\'') => true,
        [.., TokenTree::Punct(first), TokenTree::Punct(last)] => {
            last.as_char() == ':' && is_joint(first, ':')
        }
        _ => false,
    }
}

/// Whether a name before these tokens is not a value: a path segment (`::`), a field of a struct literal (`:`), a function
/// (`(`) or a macro (`!(`).
fn names_else(after: &[TokenTree]) -> bool {
    match after {
        [TokenTree::Punct(next), ..] if next.as_char() == ':' => true,
        [TokenTree::Group(next), ..] => next.delimiter() == Delimiter::Parenthesis,
        [next, TokenTree::Group(_), ..] => is_punct(next, '!'),
        _ => false,
    }
}

pub(crate) fn is_joint(punct: &Punct, char: char) -> bool {
    punct.as_char() == char && punct.spacing() == Spacing::Joint
}

pub(crate) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

pub(crate) fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// Tracks angle brackets, to tell the commas of `f::<A, B>()` and `<T as Tr<A, B>>::f()` from those that end an expression.
#[derive(Default)]
pub(crate) struct Angles {
    depth: usize,
    last: Option<TokenTree>,
}

impl Angles {
    pub(crate) const fn is_inside(&self) -> bool {
        self.depth > 0
    }

    /// Takes the next token; returns whether it is a comma that ends the expression.
    pub(crate) fn ends_at(&mut self, token: &TokenTree) -> bool {
        if self.depth == 0 && is_punct(token, ',') {
            return true;
        }
        if is_punct(token, '<') && (self.depth > 0 || self.expects_operand()) {
            self.depth += 1;
        } else if is_punct(token, '>') && self.depth > 0 && !self.is_arrow() {
            self.depth -= 1;
        }
        self.last = Some(token.clone());
        false
    }

    /// Whether `<` opens a path: at the start of a value, or after `::`. Elsewhere it is an operator.
    fn expects_operand(&self) -> bool {
        match &self.last {
            None => true,
            Some(TokenTree::Punct(punct)) => {
                !matches!(punct.as_char(), '>' | '?' | '.') && !is_joint(punct, '<')
            }
            Some(_) => false,
        }
    }

    fn is_arrow(&self) -> bool {
        matches!(&self.last, Some(TokenTree::Punct(punct)) if is_joint(punct, '-') || is_joint(punct, '='))
    }
}

/// The name of the field, if the expression is nothing else: `rows` or `self.rows`.
pub(crate) fn plain_member(tokens: &TokenStream) -> Option<String> {
    let trees: Vec<_> = tokens.clone().into_iter().collect();
    match &trees[..] {
        [TokenTree::Ident(receiver), TokenTree::Punct(dot), member]
            if receiver == "self" && dot.as_char() == '.' =>
        {
            Some(member.to_string())
        }
        _ => None,
    }
}
