//! The README begins with a program that exists: examples/quickstart/src/bin/ten_lines.rs.

use crate::step::root;
use crate::tree::read;

const PROGRAM: &str = "examples/quickstart/src/bin/ten_lines.rs";

pub(crate) fn check() -> Result<(), String> {
    compare(
        &read(&root().join("README.md"))?,
        &read(&root().join(PROGRAM))?,
    )
}

fn compare(readme: &str, program: &str) -> Result<(), String> {
    let shown = first_block(readme).ok_or("README.md shows no Rust code")?;
    // The first line says to the reader of the file what the README says in its own words.
    let real: String = program
        .lines()
        .skip_while(|line| line.starts_with("//!") || line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect();
    if shown == real {
        return Ok(());
    }
    Err(format!(
        "the first code block of README.md differs from {PROGRAM}; the program says:\n{real}"
    ))
}

fn first_block(markdown: &str) -> Option<&str> {
    let (_, rest) = markdown.split_once("```rust\n")?;
    rest.split_once("```").map(|(block, _)| block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_the_program() {
        let program = "//! Says what it is.\n\nfn main() {\n}\n";
        assert_eq!(
            compare("# A\n```rust\nfn main() {\n}\n```\nb\n", program),
            Ok(())
        );
        assert!(compare("# A\n```rust\nfn main() {}\n```\n", program).is_err());
        assert!(compare("# A\n", program).is_err());
    }
}
