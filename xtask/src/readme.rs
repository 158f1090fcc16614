//! The README shows programs that exist: one of Rust at its head, one class for Python, and one for a GPU.

use crate::step::root;
use crate::tree::read;

/// The heading under which the code block is, how it begins, and the file that it shows.
const SHOWN: [(&str, &str, &str); 3] = [
    ("", "```rust\n", "examples/quickstart/src/bin/ten_lines.rs"),
    // Not compiled from the README: a doctest of it would have to link Python.
    (
        "## Python\n",
        "```rust,ignore\n",
        "examples/python-quickstart/src/lib.rs",
    ),
    // Nor this: it would need a feature.
    (
        "## GPUs\n",
        "```rust,ignore\n",
        "examples/cuda-slice/src/lib.rs",
    ),
];

pub(crate) fn check() -> Result<(), String> {
    let readme = read(&root().join("README.md"))?;
    for (heading, fence, program) in SHOWN {
        let (_, section) = readme
            .split_once(heading)
            .ok_or_else(|| format!("README.md has no section {}", heading.trim()))?;
        compare(section, fence, program, &read(&root().join(program))?)?;
    }
    Ok(())
}

fn compare(readme: &str, fence: &str, file: &str, program: &str) -> Result<(), String> {
    let shown =
        first_block(readme, fence).ok_or_else(|| format!("README.md does not show {file}"))?;
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
        "a code block of README.md differs from {file}; the file says:\n{real}"
    ))
}

fn first_block<'a>(markdown: &'a str, fence: &str) -> Option<&'a str> {
    let (_, rest) = markdown.split_once(fence)?;
    rest.split_once("```").map(|(block, _)| block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_the_program() {
        let program = "//! Says what it is.\n\nfn main() {\n}\n";
        let compare = |readme| compare(readme, "```rust\n", "main.rs", program);
        assert_eq!(compare("# A\n```rust\nfn main() {\n}\n```\nb\n"), Ok(()));
        assert!(compare("# A\n```rust\nfn main() {}\n```\n").is_err());
        assert!(compare("# A\n```rust,ignore\nfn main() {\n}\n```\n").is_err());
        assert!(compare("# A\n").is_err());
    }
}
