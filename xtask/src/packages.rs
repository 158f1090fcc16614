//! What the manifests say: packages of the workspace, features of core, the minimum Rust version.
//!
//! A few lines of text search, since a TOML reader would be this tool's only dependency.

use crate::step::root;
use crate::tree::{entries, read, relative};

/// The names of the packages in `examples/` that are programs, one per directory; the others are for Python.
pub(crate) fn examples() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for directory in entries(&root().join("examples"))? {
        let manifest = directory.join("Cargo.toml");
        if manifest.is_file() && directory.join("src/main.rs").is_file() {
            let name = value(&read(&manifest)?, "package", "name");
            names.push(
                name.ok_or_else(|| format!("{} names no package", relative(&root(), &manifest)))?,
            );
        }
    }
    Ok(names)
}

/// The features of a package, in the manifest's order, without `default`.
pub(crate) fn features_of(package: &str) -> Result<Vec<String>, String> {
    Ok(features(&read(&root().join(package).join("Cargo.toml"))?))
}

/// `rust-version` of the workspace.
pub(crate) fn minimum_rust() -> Result<String, String> {
    value(
        &read(&root().join("Cargo.toml"))?,
        "workspace.package",
        "rust-version",
    )
    .ok_or_else(|| "Cargo.toml has no workspace.package.rust-version".into())
}

/// The names of the packages that may be published, dependencies first.
pub(crate) const PUBLISHED: [&str; 3] = ["dlpack-derive", "dlpack-core", "dlpack-pyo3"];

fn features(manifest: &str) -> Vec<String> {
    section(manifest, "features")
        .filter_map(|line| {
            let (name, _) = line.split_once('=')?;
            // A list may go on over several lines; its items have no `=`.
            Some(name.trim().trim_matches('"').to_owned())
        })
        .filter(|name| name != "default" && !name.starts_with('#'))
        .collect()
}

fn value(manifest: &str, table: &str, key: &str) -> Option<String> {
    section(manifest, table).find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// The lines of one table.
fn section<'a>(manifest: &'a str, table: &str) -> impl Iterator<Item = &'a str> {
    let header = format!("[{table}]");
    manifest
        .lines()
        .skip_while(move |line| line.trim() != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[package]
name = "some-name"

[features]
default = ["std"]
# what needs an operating system
std = []
image = [
    "dep:image",
    "std",
]

[dependencies]
half = { version = "2", optional = true }
"#;

    #[test]
    fn features_are_the_keys_of_their_table() {
        assert_eq!(features(MANIFEST), ["std", "image"]);
    }

    #[test]
    fn values_are_unquoted() {
        assert_eq!(
            value(MANIFEST, "package", "name").as_deref(),
            Some("some-name")
        );
        assert_eq!(value(MANIFEST, "package", "half"), None);
    }

    #[test]
    fn the_workspace_says_its_minimum_rust() {
        assert!(minimum_rust().unwrap().starts_with("1."));
    }
}
