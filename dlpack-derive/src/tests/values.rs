//! Where the user's expressions end, and which of their names are fields.

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::{ParseStream, Parser};

use crate::syntax::expr::{self, Entry};

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
    ] {
        let found = expr::bind_fields(tokens(source), &[&rows, &raw]);
        assert_eq!(found.to_string(), tokens(bound).to_string(), "{source}");
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
