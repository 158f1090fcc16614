//! Expansions and errors of the derives, on token streams, without a compiler.

mod complete;
mod errors;
mod methods;
mod snapshots;
mod values;

use proc_macro2::TokenStream;

use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::Derive;
use crate::syntax::root::Root;

fn expand(derive: Derive, source: &str) -> Result<TokenStream, Vec<(String, String)>> {
    expand_at(Root::Core, derive, source)
}

/// The expansion, or the error messages with the source text they point to and its number in the source.
fn expand_at(
    root: Root,
    derive: Derive,
    source: &str,
) -> Result<TokenStream, Vec<(String, String)>> {
    let item = syn::parse_str(source).expect("the test's own item parses");
    let cx = Ctxt::new(root);
    crate::try_derive(derive, &item, false, &cx).ok_or_else(|| {
        let errors = cx.into_errors();
        assert!(!errors.is_empty(), "refused without a reason");
        let located = errors.iter().map(|error| {
            let (text, column) = place(error).expect("an error points into the source");
            let number = source
                .match_indices(&text)
                .filter(|&(at, _)| at <= column && is_whole(source, at, &text));
            (error.to_string(), format!("{text}#{}", number.count()))
        });
        located.collect()
    })
}

/// The formatted expansion, without the patch version in its paths.
fn print(tokens: &TokenStream) -> String {
    let named = concat!("__private", env!("CARGO_PKG_VERSION_PATCH"));
    let text = tokens.to_string();
    assert!(!text.contains("__private") || text.contains(named));
    let file = syn::parse_file(&text.replace(named, "__private"));
    prettyplease::unparse(&file.expect("the expansion parses"))
}

/// The text that an error points to, and its position.
fn place(error: &syn::Error) -> Option<(String, usize)> {
    let span = error.span();
    Some((span.source_text()?, span.start().column))
}

/// Whether a text is a whole word at this position of the source.
fn is_whole(source: &str, at: usize, text: &str) -> bool {
    let word = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    let inside = |neighbour: Option<char>, own: Option<char>| word(neighbour) && word(own);
    !inside(source[..at].chars().next_back(), text.chars().next())
        && !inside(
            source[at + text.len()..].chars().next(),
            text.chars().next_back(),
        )
}
