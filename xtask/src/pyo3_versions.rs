//! The range of PyO3 that dlpack-pyo3 accepts: its tests, built with each version that the lock file does not name.

use crate::pytests;
use crate::step::{Outcome, Step, root, run, target_dir};
use crate::tree::read;

/// The minor versions before the newest, which every other step uses.
const OLDER: [&str; 2] = ["0.28", "0.29"];

pub(crate) fn steps() -> Vec<Step> {
    let step = |version: &'static str| {
        Step::new(format!("Python tests with PyO3 {version}"), move || {
            with(version)
        })
    };
    OLDER.into_iter().map(step).collect()
}

/// Cargo resolves a range to its newest version, so an older one takes a package of its own, with its own
/// lock file, over the same sources.
fn with(version: &str) -> Result<Outcome, String> {
    let folder = target_dir().join(format!("pyo3-{version}"));
    let manifest = manifest(
        &read(&root().join("dlpack-pyo3/pytests/Cargo.toml"))?,
        version,
    )?;
    let path = folder.join("Cargo.toml");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, manifest))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    match pytests::with_manifest(&path)? {
        Some(command) => run(command),
        None => Ok(Outcome::Skipped("there is no Python here".into())),
    }
}

/// The manifest of the Python tests outside the workspace, with this version of PyO3.
fn manifest(text: &str, version: &str) -> Result<String, String> {
    let at = |folder: &str| root().join(folder).display().to_string();
    let mut lines = vec!["[workspace]".to_owned()];
    for line in text.lines() {
        lines.push(match line {
            "[lints]" => break,
            "edition.workspace = true" => "edition = \"2024\"".into(),
            "dlpack-pyo3.workspace = true" => {
                format!("dlpack-pyo3 = {{ path = {:?} }}", at("dlpack-pyo3"))
            }
            "[lib]" => format!("[lib]\npath = {:?}", at("dlpack-pyo3/pytests/src/lib.rs")),
            _ if line.ends_with(".workspace = true") => continue,
            _ if line.starts_with("pyo3 = ") => line.replace(
                "workspace = true",
                &format!("version = \"{version}\", default-features = false"),
            ),
            _ => line.into(),
        });
    }
    let manifest = lines.join("\n");
    if manifest.contains("workspace = true") || !manifest.contains("[lib]\npath") {
        return Err(
            "the manifest of the Python tests has a form that this step does not know".into(),
        );
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_stands_alone() {
        let text = read(&root().join("dlpack-pyo3/pytests/Cargo.toml")).unwrap();
        let manifest = manifest(&text, "0.28").unwrap();
        assert!(manifest.starts_with("[workspace]\n[package]"));
        assert!(manifest.contains("version = \"0.28\", default-features = false"));
        assert!(!manifest.contains("[lints]"));
    }
}
