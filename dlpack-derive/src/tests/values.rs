//! Where the user's expressions end, and which of their names are fields.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};

use crate::syntax::expr::{self, Entry};
use crate::syntax::fragment;
use crate::syntax::scope;

fn tokens(source: &str) -> TokenStream {
    source.parse().expect("the test's own tokens lex")
}

#[test]
fn an_expression_ends_at_the_comma_after_it() {
    for (source, first) in [
        ("a, b", "a"),
        ("f(a, b), c", "f(a, b)"),
        ("f::<A, B>(), c", "f::<A, B>()"),
        ("f::<A<B, C>, D>(), c", "f::<A<B, C>, D>()"),
        ("<T as Tr<A, B>>::f(), c", "<T as Tr<A, B>>::f()"),
        ("1 + <T as Tr<A, B>>::f(), c", "1 + <T as Tr<A, B>>::f()"),
        ("f::<fn(A) -> B, C>(), d", "f::<fn(A) -> B, C>()"),
        ("a < b, c", "a < b"),
        ("a << b, c > d", "a << b"),
        ("a? < b, c", "a? < b"),
        ("a > b, c", "a > b"),
    ] {
        let parser = |input: ParseStream<'_>| {
            let taken = expr::take_expression(input);
            input.parse::<TokenStream>().map(|_| taken)
        };
        let taken = parser.parse_str(source).expect("the rest is tokens");
        assert_eq!(taken.to_string(), tokens(first).to_string(), "{source}");
    }
}

/// Tokens in which `F { .. }` stands for the invisible group around a fragment of a macro.
fn with_fragments(tokens: TokenStream) -> TokenStream {
    let mut found = Vec::new();
    for tree in tokens {
        let TokenTree::Group(group) = tree else {
            found.push(tree);
            continue;
        };
        let delimiter = match found.last() {
            Some(TokenTree::Ident(mark)) if mark == "F" => {
                found.pop();
                Delimiter::None
            }
            _ => group.delimiter(),
        };
        found.push(Group::new(delimiter, with_fragments(group.stream())).into());
    }
    found.into_iter().collect()
}

#[test]
fn a_fragment_is_one_operand() {
    for (source, resolved) in [
        ("a + b", "a + b"),
        // Alone.
        ("F { a + b }", "a + b"),
        ("F { F { a + b } }", "a + b"),
        ("f(F { a + b }, F { -a })", "f(a + b, -a)"),
        ("[F { a + b }, _]", "[a + b, _]"),
        (
            "{ F { let n = a + b }; F { n = 2 }; F { n } }",
            "{ let n = a + b; n = 2; n }",
        ),
        (
            "match F { a + b } { F { 1 | 2 } => F { a + b }, _ => 1 }",
            "match a + b { 1 | 2 => a + b, _ => 1 }",
        ),
        (
            "if F { a == b } { 1 } else { 2 }",
            "if a == b { 1 } else { 2 }",
        ),
        // An operand of an operator.
        ("F { a + b } * 2", "(a + b) * 2"),
        ("2 * F { a + b }", "2 * (a + b)"),
        ("-F { a + b }", "-(a + b)"),
        ("F { a + b } as usize", "(a + b) as usize"),
        ("F { a as u8 }.len()", "(a as u8).len()"),
        ("F { a + b }?", "(a + b)?"),
        ("F { || 2 }(1)", "(|| 2)(1)"),
        ("F { a + b }[1]", "(a + b)[1]"),
        ("F { a..b }.len()", "(a..b).len()"),
        ("F { a < b } == c", "(a < b) == c"),
        ("F { a != b } & c", "(a != b) & c"),
        (
            "F { if a { 1 } else { 2 } } * 2",
            "(if a { 1 } else { 2 }) * 2",
        ),
        ("&a[F { n + 1 } * 2..]", "&a[(n + 1) * 2..]"),
        ("F { F { a + b } * 2 }.len()", "((a + b) * 2).len()"),
        ("F { F { a + b } } * 2", "(a + b) * 2"),
        // Prefix operators bind less than suffixes only.
        ("F { -a } * 2", "-a * 2"),
        ("-F { -1 }", "- -1"),
        ("F { -a } as usize", "-a as usize"),
        ("F { -a }.abs()", "(-a).abs()"),
        ("F { &mut a }.len()", "(&mut a).len()"),
        ("F { &a }[0]", "(&a)[0]"),
        // Nothing binds more than these.
        ("F { a } * 2", "a * 2"),
        ("F { a.b(c + d)[1]? } * 2", "a.b(c + d)[1]? * 2"),
        ("F { a::f::<B<C>>(1) } * 2", "a::f::<B<C>>(1) * 2"),
        ("F { <A as B>::C } * 2", "<A as B>::C * 2"),
        ("F { vec![1] }.len()", "vec![1].len()"),
        ("F { a::b }(1) * F { 3 }", "a::b(1) * 3"),
        ("F { { 1 } } * 2", "{ 1 } * 2"),
        // Types, alone or next to what could be an operator.
        ("size_of::<F { Vec<u8> }>()", "size_of::<Vec<u8>>()"),
        ("size_of::<F { &[u8] }>()", "size_of::<&[u8]>()"),
        ("size_of::<F { fn(A) -> B }>()", "size_of::<fn(A) -> B>()"),
        ("[u8; F { N + 1 } * 2]", "[u8; (N + 1) * 2]"),
        ("&'static F { dyn A + B }", "&'static (dyn A + B)"),
        ("&F { dyn A<B> }", "&dyn A<B>"),
        ("size_of::<F { *const u8 }>()", "size_of::<*const u8>()"),
        ("<F { Vec<u8> } as Sized>::N", "<Vec<u8> as Sized>::N"),
        ("a as F { u8 } * 2", "a as u8 * 2"),
        ("F { A }::N * 2", "A::N * 2"),
    ] {
        let found = fragment::resolve_fragments(with_fragments(tokens(source)));
        let text = |tokens: &TokenStream| tokens.to_string().replace(' ', "");
        assert_eq!(text(&found), text(&tokens(resolved)), "{source}");
    }
}

#[test]
fn only_an_integer_literal_gets_a_type() {
    for (source, typed) in [
        ("3", "3_i64"),
        ("- 3", "- 3_i64"),
        ("3_000", "3_000_i64"),
        ("0xFF", "0xFF_i64"),
        ("3_u8", "3_u8"),
        ("3.0", "3.0"),
        ("'a'", "'a'"),
        ("3 * 2", "3 * 2"),
        ("! 3", "! 3"),
        ("self . rows - 3", "self . rows - 3"),
        ("self . 0", "self . 0"),
    ] {
        let found = expr::with_integer_type(&tokens(source)).to_string();
        assert_eq!(found, tokens(typed).to_string(), "{source}");
    }
}

#[test]
fn a_plain_name_of_a_field_is_the_field() {
    let rows = Ident::new("rows", Span::call_site());
    let raw = Ident::new_raw("type", Span::call_site());
    for (source, bound) in [
        ("rows", "self.rows"),
        ("rows * 2", "self.rows * 2"),
        ("-rows as i64", "-self.rows as i64"),
        ("f(rows, [rows])", "f(self.rows, [self.rows])"),
        ("vec![rows]", "vec![self.rows]"),
        ("0..rows", "0..self.rows"),
        ("..rows", "..self.rows"),
        ("rows.len()", "self.rows.len()"),
        ("rows != 3", "self.rows != 3"),
        ("r#type", "self.r#type"),
        ("self.rows", "self.rows"),
        ("other.rows", "other.rows"),
        ("path::rows", "path::rows"),
        ("rows::N", "rows::N"),
        ("S { rows: 1 }", "S { rows: 1 }"),
        ("rows(1)", "rows(1)"),
        ("rows!(1)", "rows!(1)"),
        ("'rows: loop {}", "'rows: loop {}"),
        ("columns", "columns"),
        // Struct literals.
        (
            "S { rows, n: 2 }.total()",
            "S { rows: self.rows, n: 2 }.total()",
        ),
        ("f(a::S { rows })", "f(a::S { rows: self.rows })"),
        (
            "{ if a { b }; S { rows } }",
            "{ if a { b }; S { rows: self.rows } }",
        ),
        ("S { n: rows }", "S { n: self.rows }"),
        ("{ rows }", "{ self.rows }"),
        (
            "if a == A { rows } else { rows }",
            "if a == A { self.rows } else { self.rows }",
        ),
        ("|| -> usize { rows }", "|| -> usize { self.rows }"),
        ("unsafe { rows }", "unsafe { self.rows }"),
        ("list! { rows, 2 }", "list! { self.rows, 2 }"),
    ] {
        let found = expr::bind_fields(tokens(source), &[&rows, &raw]);
        assert_eq!(found.to_string(), tokens(bound).to_string(), "{source}");
    }
}

#[test]
fn variables_with_the_name_of_a_field_are_found() {
    let rows = Ident::new("rows", Span::call_site());
    for (source, count) in [
        // Each declares `rows`.
        ("{ let rows: usize = 2; rows / 2 }", 1),
        ("{ let rows = self.rows; rows }", 1),
        ("{ let mut rows; rows = 2; rows }", 1),
        ("{ let (rows, [_, rows]) = f(); 1 }", 2),
        ("{ let S { rows, .. } = s; 1 }", 1),
        ("{ let S { n: rows } = s; 1 }", 1),
        ("{ let Some(&rows) = a else { return 1 }; 1 }", 1),
        ("if let Some(rows) = self.a { 1 } else { 2 }", 1),
        ("while let [rows, ..] = a { }", 1),
        ("if a && let Some(ref rows) = b { 1 } else { 2 }", 1),
        ("f(|rows| 1)", 1),
        ("f(|&rows: &usize| 1)", 1),
        ("f(move |a: HashMap<u8, u8>, rows: u8| 1)", 1),
        ("f(1, |(a, rows)| 1)", 1),
        ("|a| |rows| 1", 1),
        ("a || f(|rows| 1)", 1),
        ("f(&mut |rows| 1)", 1),
        ("match a { rows => 1 }", 1),
        (
            "match a { 0 => 1, A::B(rows) | A::C { rows } if rows > 1 => 2 }",
            2,
        ),
        ("match a { 0 => { 1 } rows @ 1..=2 => 2, _ => |rows| 3 }", 2),
        ("match a { 0 => f::<A, B>(1), S { rows } => 2 }", 1),
        ("for (i, rows) in a { }", 1),
        ("{ fn f(rows: usize) -> usize { 1 } f(2) }", 1),
        ("{ const rows: usize = 2; 1 }", 1),
        ("matches!(a, Some(rows) if rows > 1)", 1),
        ("vec![{ let rows = 1; 2 }]", 1),
        // None declares it.
        ("rows | 2", 0),
        ("a || rows > 2 || b", 0),
        ("(a | b) | rows | c", 0),
        ("a? | rows | c", 0),
        ("f(|a| rows, |b| rows)", 0),
        ("|| rows", 0),
        ("|a: &rows::T| 1", 0),
        ("{ let n: usize = rows; n }", 0),
        ("{ let S { rows: n, .. } = s; n }", 0),
        ("if let Some(n) = rows { rows } else { rows }", 0),
        ("if let 1..=9 = rows { rows } else { rows }", 0),
        (
            "match rows { 0 => rows, n if n > rows => { rows } _ => rows }",
            0,
        ),
        (
            "match rows { rows::A => 1, rows(_) => 2, self.rows => 3 }",
            0,
        ),
        ("for i in 0..rows { }", 0),
        ("{ let f: for<'a> fn(&'a u8) = g; 1 }", 0),
        ("const { rows }", 0),
        ("p as *const rows", 0),
        ("S { rows: 1, n: rows }", 0),
        ("matches!(rows, Some(n))", 0),
        ("map! { rows => 2 }", 0),
        ("{ let n = 1; rows }", 0),
    ] {
        let found = scope::declared_fields(&tokens(source), &[&rows]);
        assert_eq!(found.len(), count, "{source}");
    }
}

#[test]
fn a_list_is_one_bracket_with_commas() {
    let show = |source: &str| {
        let entries = expr::parse_list(&tokens(source)).expect("no empty entry")?;
        let show = |entry: &Entry| match entry {
            Entry::Hole(_) => "hole".to_owned(),
            Entry::Expr(tokens) => tokens.to_string(),
        };
        Some(entries.iter().map(show).collect::<Vec<_>>())
    };
    let entries = |entries: &[&str]| {
        Some(
            entries
                .iter()
                .map(|&entry| entry.to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(show("[]"), entries(&[]));
    assert_eq!(show("[a, _, 3]"), entries(&["a", "hole", "3"]));
    assert_eq!(show("[a, _,]"), entries(&["a", "hole"]));
    assert_eq!(show("[(a, b)]"), entries(&["(a , b)"]));
    assert_eq!(show("[a; 3]"), None);
    assert_eq!(show("a"), None);
    assert_eq!(show("[a][0]"), None);
    assert_eq!(show("(a, b)"), None);
}

#[test]
fn slices_are_seen() {
    for (source, slice) in [
        ("&self.items[..]", true),
        ("&self.items[1..n]", true),
        ("&self.items[0]", false),
        ("&self.items", false),
        ("self.items[..]", false),
        ("", false),
    ] {
        assert_eq!(expr::is_slice(&tokens(source)), slice, "{source}");
    }
}
