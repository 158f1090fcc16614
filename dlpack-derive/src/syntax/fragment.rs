//! Fragments of `macro_rules`, such as `$e:expr`, in the user's item.
//!
//! rustc wraps a fragment in a group without delimiters, but ignores such a group in the output of a macro: of `$e * 2` with
//! `1 + 1` it would multiply the last `1`. So an operand becomes a group in parentheses, and other fragments their tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::Type;

use crate::syntax::expr::{Angles, is_joint, is_punct, trees_of};

/// The tokens without the groups that rustc would ignore.
pub(crate) fn resolve_fragments(tokens: TokenStream) -> TokenStream {
    if !has_fragment(&tokens) {
        return tokens;
    }
    let trees = trees_of(&tokens);
    let mut resolved = TokenStream::new();
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else {
            resolved.extend([tree.clone()]);
            continue;
        };
        let inner = resolve_fragments(group.stream());
        let delimiter = match group.delimiter() {
            Delimiter::None if !needs_parentheses(&trees[..at], &inner, &trees[at + 1..]) => {
                resolved.extend(inner);
                continue;
            }
            Delimiter::None => Delimiter::Parenthesis,
            delimiter => delimiter,
        };
        let mut visible = Group::new(delimiter, inner);
        // No lint reports parentheses that have the hygiene of an expansion.
        visible.set_span(match group.delimiter() {
            Delimiter::None => Span::call_site().located_at(group.span()),
            _ => group.span(),
        });
        resolved.extend([TokenTree::from(visible)]);
    }
    resolved
}

fn has_fragment(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Group(group) => {
            group.delimiter() == Delimiter::None || has_fragment(&group.stream())
        }
        _ => false,
    })
}

/// Whether operators around a fragment would take only a part of it as their operand.
fn needs_parentheses(before: &[TokenTree], fragment: &TokenStream, after: &[TokenTree]) -> bool {
    match Precedence::of(fragment) {
        Precedence::Operand => false,
        Precedence::Prefix => is_suffix(after),
        Precedence::Operator => ends_with_operator(before) || is_suffix(after) || is_infix(after),
        Precedence::Bounds => !before.is_empty() || !after.is_empty(),
    }
}

/// How strongly a fragment holds together.
enum Precedence {
    /// A path, a literal, a group, and calls, fields and indices of these. Also most other fragments than expressions.
    Operand,
    /// An operand with `-`, `!`, `*` or `&` before it.
    Prefix,
    Operator,
    /// `dyn A + B`, which is ambiguous after `&`.
    Bounds,
}

impl Precedence {
    fn of(fragment: &TokenStream) -> Self {
        let trees = trees_of(fragment);
        let is_prefix = |tree: &TokenTree| match tree {
            TokenTree::Punct(punct) => matches!(punct.as_char(), '-' | '!' | '*' | '&'),
            TokenTree::Ident(word) => word == "mut",
            _ => false,
        };
        let start = trees.iter().position(|tree| !is_prefix(tree));
        let (prefix, operand) = trees.split_at(start.unwrap_or(trees.len()));
        if is_operand(operand) {
            return match prefix {
                [] => Self::Operand,
                _ => Self::Prefix,
            };
        }
        if is_no_expression(&trees) {
            return Self::Operand;
        }
        match syn::parse2(fragment.clone()) {
            // Without `dyn`, `A + B` is a sum.
            Ok(Type::TraitObject(object)) if object.dyn_token.is_none() => Self::Operator,
            Ok(Type::TraitObject(object)) if object.bounds.len() > 1 => Self::Bounds,
            Ok(_) => Self::Operand,
            Err(_) => Self::Operator,
        }
    }
}

/// Whether the tokens have no operator except for `.` and `?`.
fn is_operand(trees: &[TokenTree]) -> bool {
    const WORDS: [&str; 16] = [
        "as", "async", "break", "const", "continue", "for", "if", "let", "loop", "match", "move",
        "return", "static", "unsafe", "while", "yield",
    ];
    let mut angles = Angles::default();
    for (at, tree) in trees.iter().enumerate() {
        let was_inside = angles.is_inside();
        angles.ends_at(tree);
        if was_inside || angles.is_inside() {
            continue;
        }
        let fits = match tree {
            TokenTree::Group(_) | TokenTree::Literal(_) => true,
            TokenTree::Ident(word) => !WORDS.iter().any(|known| word == known),
            TokenTree::Punct(punct) => match punct.as_char() {
                '.' => !is_joint(punct, '.'),
                // The bang of a macro, not of `!=`.
                '!' => matches!(trees.get(at + 1), Some(TokenTree::Group(_))),
                char => matches!(char, '?' | ':' | '\''),
            },
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Whether the tokens start as no expression does.
fn is_no_expression(trees: &[TokenTree]) -> bool {
    const WORDS: [&str; 11] = [
        "enum", "extern", "fn", "impl", "let", "mod", "pub", "struct", "trait", "type", "use",
    ];
    matches!(trees.first(), Some(TokenTree::Ident(word)) if WORDS.iter().any(|known| word == known))
}

/// Whether the last token is an operator before an operand.
fn ends_with_operator(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Punct(first), last]
            if is_punct(last, '>') && (is_joint(first, '-') || is_joint(first, '=')) =>
        {
            false
        }
        [.., TokenTree::Punct(last)] => !matches!(last.as_char(), ',' | ';' | ':' | '?'),
        _ => false,
    }
}

/// Whether the tokens start with what follows an operand: `.`, `?`, arguments or an index.
fn is_suffix(after: &[TokenTree]) -> bool {
    match after {
        [TokenTree::Punct(dot), ..] if dot.as_char() == '.' => !is_joint(dot, '.'),
        [TokenTree::Group(group), ..] => {
            matches!(
                group.delimiter(),
                Delimiter::Parenthesis | Delimiter::Bracket
            )
        }
        [next, ..] => is_punct(next, '?'),
        [] => false,
    }
}

/// Whether the tokens start with an operator between two operands.
fn is_infix(after: &[TokenTree]) -> bool {
    match after {
        [TokenTree::Punct(first), last, ..] if is_joint(first, '=') && is_punct(last, '>') => false,
        [TokenTree::Punct(next), ..] => !matches!(next.as_char(), ',' | ';' | ':'),
        [TokenTree::Ident(word), ..] => word == "as",
        _ => false,
    }
}
