//! Variables that a user's expression declares, found by its tokens: after `let`, between the bars of a closure, in the arms of a
//! `match`, and so on.
//!
//! A name of a field stands for the field in the whole expression, whatever the expression declares. A variable with that name
//! would be ignored without an error, so it is reported.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use crate::syntax::ctxt::Ctxt;
use crate::syntax::expr::{bind_fields, follows_path, is_joint, is_punct, is_word, trees_of};

/// Brings the names of fields into scope, and reports variables with these names.
pub(crate) fn bind_and_check(tokens: &TokenStream, fields: &[&Ident], cx: &Ctxt) -> TokenStream {
    for name in declared_fields(tokens, fields) {
        let message = format!(
            "`{name}` stands for the field `self.{name}` in the whole expression: give this variable another name"
        );
        cx.error(name, message);
    }
    bind_fields(tokens.clone(), fields)
}

/// The variables that have the name of a field.
pub(crate) fn declared_fields(tokens: &TokenStream, fields: &[&Ident]) -> Vec<Ident> {
    let mut finder = Finder {
        fields,
        found: Vec::new(),
    };
    finder.visit(&trees_of(tokens));
    finder.found
}

struct Finder<'a> {
    fields: &'a [&'a Ident],
    found: Vec<Ident>,
}

impl Finder<'_> {
    fn visit(&mut self, trees: &[TokenTree]) {
        let mut at = 0;
        while at < trees.len() {
            let (before, after) = (&trees[..at], &trees[at + 1..]);
            match &trees[at] {
                TokenTree::Group(group) => self.visit_group(group, before),
                TokenTree::Ident(ident) => self.visit_keyword(ident, after),
                TokenTree::Punct(bar) if bar.as_char() == '|' => {
                    let end = after.iter().position(|token| is_punct(token, '|'));
                    if let Some(end) = end.filter(|_| expects_operand(before)) {
                        self.add_parameters(&after[..end]);
                        at += end + 1;
                    } else if is_joint(bar, '|') {
                        at += 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn visit_group(&mut self, group: &Group, before: &[TokenTree]) {
        let inner = trees_of(&group.stream());
        let name_of_macro = match before {
            [.., TokenTree::Ident(name), mark] if is_punct(mark, '!') => Some(name),
            _ => None,
        };
        if name_of_macro.is_some_and(|name| name == "matches") {
            let comma = inner.iter().rposition(|token| is_punct(token, ','));
            self.add_arm(comma.map_or(&[], |at| &inner[at + 1..]));
        } else if name_of_macro.is_none() && group.delimiter() == Delimiter::Brace {
            self.add_arms(&inner);
        }
        self.visit(&inner);
    }

    fn visit_keyword(&mut self, keyword: &Ident, after: &[TokenTree]) {
        if keyword == "let" {
            self.add_pattern(tokens_before_end(after, ends_pattern), false);
        } else if keyword == "const" || keyword == "static" {
            if matches!(after, [TokenTree::Ident(_), colon, ..] if is_punct(colon, ':')) {
                self.add_pattern(tokens_before_end(after, ends_pattern), false);
            }
        } else if keyword == "for" && !matches!(after, [next, ..] if is_punct(next, '<')) {
            if let Some(end) = after.iter().position(|token| is_word(token, "in")) {
                self.add_pattern(&after[..end], false);
            }
        } else if keyword == "fn" {
            let parameters = after.iter().find_map(|token| match token {
                TokenTree::Group(group) => Some(group.stream()),
                _ => None,
            });
            self.add_parameters(&trees_of(&parameters.unwrap_or_default()));
        }
    }

    /// `PATTERN: TYPE, PATTERN, ..`.
    fn add_parameters(&mut self, trees: &[TokenTree]) {
        let mut rest = trees;
        while !rest.is_empty() {
            let mut angles = 0_usize;
            let end = rest.iter().enumerate().position(|(at, token)| {
                let arrow = at > 0 && is_punct(&rest[at - 1], '-');
                match is_punct(token, '>') && !arrow {
                    true => angles = angles.saturating_sub(1),
                    false => angles += usize::from(is_punct(token, '<')),
                }
                angles == 0 && is_punct(token, ',')
            });
            let (parameter, others) = rest.split_at(end.unwrap_or(rest.len()));
            self.add_pattern(tokens_before_end(parameter, ends_pattern), false);
            rest = others.get(1..).unwrap_or_default();
        }
    }

    /// `PATTERN => .., PATTERN if .. => ..`.
    fn add_arms(&mut self, trees: &[TokenTree]) {
        for at in 1..trees.len() {
            if is_arrow(&trees[at - 1..=at]) {
                let before = &trees[..at - 1];
                self.add_arm(&before[start_of_arm(before)..]);
            }
        }
    }

    /// `PATTERN` or `PATTERN if ..`.
    fn add_arm(&mut self, trees: &[TokenTree]) {
        let is_guard = |trees: &[TokenTree], at: usize| is_word(&trees[at], "if");
        self.add_pattern(tokens_before_end(trees, is_guard), false);
    }

    fn add_pattern(&mut self, trees: &[TokenTree], is_struct: bool) {
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => {
                    let is_struct = group.delimiter() == Delimiter::Brace;
                    self.add_pattern(&trees_of(&group.stream()), is_struct);
                }
                TokenTree::Ident(name) if self.fields.contains(&name) => {
                    let is_else = match &trees[at + 1..] {
                        [next, after, ..] if is_punct(next, ':') => {
                            is_struct || is_punct(after, ':')
                        }
                        [next, ..] => matches!(next, TokenTree::Group(_)) || is_punct(next, '!'),
                        [] => false,
                    };
                    if !is_else && !follows_path(&trees[..at]) {
                        self.found.push(name.clone());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Where the last arm before `=>` begins: after a comma, or after the braces of the arm before.
fn start_of_arm(trees: &[TokenTree]) -> usize {
    let ends = |at: usize| match (&trees[at], trees.get(at + 1)) {
        (TokenTree::Group(group), Some(next)) if group.delimiter() == Delimiter::Brace => {
            !is_word(next, "if") && !is_punct(next, '|')
        }
        (token, _) => is_punct(token, ','),
    };
    (0..trees.len())
        .rfind(|&at| ends(at))
        .map_or(0, |at| at + 1)
}

/// The tokens before the first one that ends them.
fn tokens_before_end(
    trees: &[TokenTree],
    ends: impl Fn(&[TokenTree], usize) -> bool,
) -> &[TokenTree] {
    let end = (0..trees.len()).find(|&at| ends(trees, at));
    &trees[..end.unwrap_or(trees.len())]
}

/// Whether a token ends a pattern: `=`, but not that of `..=`; `:`, but not that of a path; `;`.
fn ends_pattern(trees: &[TokenTree], at: usize) -> bool {
    let TokenTree::Punct(punct) = &trees[at] else {
        return false;
    };
    let follows =
        |char| matches!(trees[..at].last(), Some(TokenTree::Punct(last)) if is_joint(last, char));
    match punct.as_char() {
        '=' => !follows('.'),
        ':' => !is_joint(punct, ':') && !follows(':'),
        char => char == ';',
    }
}

/// Whether a bar after these tokens opens a closure. Elsewhere it is an operator.
fn expects_operand(before: &[TokenTree]) -> bool {
    match before {
        [] => true,
        [.., TokenTree::Ident(word)] => [
            "return", "break", "move", "static", "async", "else", "in", "match", "mut",
        ]
        .iter()
        .any(|keyword| word == keyword),
        [.., TokenTree::Punct(last)] => match last.as_char() {
            '>' => is_arrow(&before[before.len().saturating_sub(2)..]),
            char => char != '?',
        },
        _ => false,
    }
}

/// Whether these tokens are `=>`.
fn is_arrow(pair: &[TokenTree]) -> bool {
    matches!(pair, [TokenTree::Punct(first), last] if is_joint(first, '=') && is_punct(last, '>'))
}
