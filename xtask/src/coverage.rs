//! Check that every requirement has a test that names it, or a reason.
//!
//! Checks spec/coverage.md against spec/ids.tsv and the sources: each requirement has one row, each test that a row names
//! exists and names the requirement, and each row without a test has a reason.

use std::collections::BTreeMap;

use crate::prelude::*;

const TABLE: &str = "spec/coverage.md";
const REQUIREMENTS: &str = "spec/ids.tsv";

pub(crate) fn main(sh: &Shell, args: Arguments) -> Result<()> {
    finish(args)?;
    check(sh)
}

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let (ids, table) = (sh.read_file(REQUIREMENTS)?, sh.read_file(TABLE)?);
    let (rows, sources) = (rows(&table)?, texts(sh, &["*.rs", "*.py"])?);
    none(errors(&ids, &rows, &sources)?)?;
    let tested = rows.iter().filter(|row| row[2] == "tested").count();
    let all = rows.len();
    println!("coverage: {all} requirements, {tested} tested, the others with a reason");
    Ok(())
}

/// One line of the table: ID, who, status, tests, reason.
type Row<'a> = [&'a str; 5];

fn rows(table: &str) -> Result<Vec<Row<'_>>> {
    let mut rows = Vec::new();
    let lines = table.lines().skip_while(|line| !line.starts_with("| ID |"));
    for line in lines.skip(2).filter(|line| line.starts_with('|')) {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let ["", id, who, status, tests, reason, ""] = columns[..] else {
            bail!("{TABLE}: `{line}` has not 5 columns");
        };
        rows.push([id, who, status, tests, reason]);
    }
    Ok(rows)
}

type Sources = [(String, String)];

fn errors(ids: &str, rows: &[Row<'_>], sources: &Sources) -> Result<Vec<String>> {
    let (mut errors, mut speaks_of) = (Vec::new(), BTreeMap::new());
    for line in ids.lines().filter(|line| !line.starts_with('#')) {
        let [id, _level, who] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{REQUIREMENTS}: `{line}` has not 3 columns");
        };
        speaks_of.insert(id, who);
        let count = rows.iter().filter(|row| row[0] == id).count();
        errors.extend((count != 1).then(|| format!("{id}: {count} rows, not one")));
    }
    for row in rows {
        let outcome = check_row(row, speaks_of.get(row[0]), sources);
        errors.extend(outcome.err().map(|error| format!("{}: {error}", row[0])));
    }
    Ok(errors)
}

fn check_row(row: &Row<'_>, speaks_of: Option<&&str>, sources: &Sources) -> Result<()> {
    let [id, found, status, tests, reason] = row;
    let who = speaks_of.with_context(|| format!("{REQUIREMENTS} has no such requirement"))?;
    ensure!(who == found, "it speaks of `{who}`, the row says `{found}`");
    // The texts between pairs of backticks.
    let mut tests = tests.split('`').skip(1).step_by(2).peekable();
    let has_test = tests.peek().is_some();
    match *status {
        "open" => bail!("still open"),
        "tested" => ensure!(has_test, "tested, but names no test (in backticks)"),
        "not here" | "later" if has_test || reason.chars().count() >= 20 => {}
        "not here" | "later" => bail!("a row without a test needs a reason of 20 characters"),
        status => bail!("`{status}` is no status"),
    }
    tests.try_for_each(|test| check_name(id, test, sources))
}

/// Finds the test and checks that it names the requirement.
fn check_name(id: &str, test: &str, sources: &Sources) -> Result<()> {
    let (file, name) = match test.rsplit_once("::") {
        None if test.starts_with("ui-tests/") => (Some(test), None),
        None => (None, Some(test)),
        Some((file, name)) => (Some(file), Some(name)),
    };
    let mut texts = Vec::new();
    for (path, text) in sources {
        if file.is_none_or(|file| file == path) {
            texts.extend(name.map_or(Some(text.clone()), |name| body(path, text, name)));
        }
    }
    let count = texts.len();
    match &texts[..] {
        [] => bail!("there is no test `{test}`"),
        [text] => {
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
            let is_named = words.any(|word| word == id);
            ensure!(is_named, "the test `{test}` does not name it");
        }
        _ => bail!("{count} tests are called `{test}`; write `path::{test}`"),
    }
    Ok(())
}

/// The test with this name: the comments above it, its body, and the head of the file.
fn body(path: &str, text: &str, name: &str) -> Option<String> {
    let is_python = path.ends_with(".py");
    let start = format!("{} {name}(", if is_python { "def" } else { "fn" });
    let lines: Vec<_> = text.contains(&start).then(|| text.lines().collect())?;
    let mut trimmed = lines.iter().map(|line| line.trim_start());
    let start = trimmed.position(|line| line.starts_with(&start))?;
    let above = lines[..start].iter().rposition(|line| line.is_empty());
    let above = above.map_or(0, |empty| empty + 1);
    let mut head = lines[above..start].iter().map(|line| line.trim());
    if !(head.any(|line| line == "#[test]") || is_python && name.starts_with("test_")) {
        return None;
    }
    // Up to the next line that is not indented more than the function.
    let indent = lines[start].len() - lines[start].trim_start().len();
    let deeper = format!("{:indent$} ", "");
    let is_inside = |line: &&&str| line.starts_with(&deeper) || ["", "):"].contains(&line.trim());
    let end = start + 1 + lines[start + 1..].iter().take_while(is_inside).count();
    let is_head = |line: &&&str| line.starts_with("//!");
    let head: Vec<_> = lines.iter().take_while(is_head).copied().collect();
    let docstring = text.strip_prefix("\"\"\"").unwrap_or_default();
    let docstring = docstring.split("\"\"\"").next();
    let parts = [&head.join("\n"), docstring?, &lines[above..end].join("\n")];
    Some(parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "# id\tlevel\twho\nA-1\tMUST\tboth\nA-2\tMUST†\tproducer";
    const FIRST: &str = "| A-1 | both | tested | `a` | |\n";
    const SECOND: &str = "| A-2 | producer | tested | `one.rs::b`, `ui-tests/no-data.rs` | |\n";
    const BREAKS: &str = include_str!("../cases/coverage.txt");

    fn found(rows: &str) -> String {
        let table = format!("| ID | who |\n|---|\n{rows}");
        let sources = include_str!("../cases/sources.txt").split("=== ").skip(1);
        let sources = sources.filter_map(|source| source.split_once('\n'));
        let owned = |(path, text): (&str, &str)| (path.into(), text.into());
        let sources: Vec<_> = sources.map(owned).collect();
        let found = errors(IDS, &super::rows(&table).unwrap(), &sources);
        found.unwrap().join("; ")
    }

    #[test]
    fn each_broken_table_is_an_error() {
        assert_eq!(found(FIRST), "A-2: 0 rows, not one");
        for line in BREAKS.lines().skip(1) {
            let [from, to, error] = line.split("=>").map(str::trim).collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let row = FIRST.replace(from, &to.replace('+', "\n"));
            assert_eq!(found(&(row + SECOND)), error, "{line}");
        }
    }

    #[test]
    fn the_list_of_requirements_is_whole() {
        let text = shell().unwrap().read_file(REQUIREMENTS).unwrap();
        let ids = text.lines().map(|line| line.split('\t').next());
        let ids = ids.collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!((ids, text.lines().count()), (232, 232));
    }
}
