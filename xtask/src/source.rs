//! Rust source with everything that is not code blanked out.

/// The source with comments, strings and character literals replaced by spaces; lines keep their numbers.
pub(crate) fn code_only(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let after_word = before.is_alphanumeric() || before == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if first == '"' {
            string(rest)
        } else if let Some(length) = raw_string(rest).filter(|_| !after_word) {
            length
        } else if first == '\'' {
            character(rest)
        } else {
            0
        };
        if length == 0 {
            out.push(first);
            before = first;
            rest = &rest[first.len_utf8()..];
        } else {
            let (skipped, next) = rest.split_at(length);
            out.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            before = ' ';
            rest = next;
        }
    }
    out
}

/// Whether `word` stands in the text as a word of its own.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `r"..."`, `br#"..."#`, `cr"..."`; a raw identifier is none.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(['"', '#']))
    })?;
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let found = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + found)
}

/// The length of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        for (source, expected) in [
            ("a // unsafe\nb", "a          \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("unsafe \" x") g"#, "f(             ) g"),
            ("f(r#\"un\"safe\"#) g", "f(            ) g"),
            ("for r in r#type {}", "for r in r#type {}"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            (r"m('\'', '}', '\u{7d}') g", "m(    ,    ,         ) g"),
        ] {
            let found = code_only(source);
            assert_eq!(found.trim_end(), expected.trim_end(), "{source}");
            assert_eq!(found.lines().count(), source.lines().count());
        }
    }

    #[test]
    fn words_have_borders() {
        assert!(has_word("an unsafe block", "unsafe"));
        assert!(has_word("unsafe{}", "unsafe"));
        assert!(!has_word("unsafe_code = deny", "unsafe"));
        assert!(!has_word("not_unsafe", "unsafe"));
    }
}
