//! The files of the checkout, without what was built.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file below `directory` with this extension, sorted; build output and hidden directories are left out.
pub(crate) fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    collect(directory, extension, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, extension, found)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    Ok(())
}

/// What lies directly in `directory`, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(directory)
        .map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
    for entry in entries {
        let entry =
            entry.map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
        paths.push(entry.path());
    }
    paths.sort();
    Ok(paths)
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The path as it is written in the repository: relative, with forward slashes.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}
