//! Check that every requirement has a test that names it, or a reason.
//!
//! Reads spec/coverage.md and checks it against spec/ids.tsv and the sources:
//!   every requirement of the groups named under `Groups covered:` has exactly one row
//!   every test that a row names exists, and names the requirement
//!   every row without a test has a reason

use std::collections::BTreeMap;

use crate::prelude::*;

const TABLE: &str = "spec/coverage.md";
const REQUIREMENTS: &str = "spec/ids.tsv";

pub(crate) fn check(sh: &Shell) -> Result<()> {
    let table = sh.read_file(TABLE)?;
    let rows = rows(&table)?;
    none(errors(&sh.read_file(REQUIREMENTS)?, &table, &rows, &texts(sh, &["*.rs", "*.py"])?)?)?;
    let tested = rows.iter().filter(|row| row.status == "tested").count();
    println!("coverage: {} requirements, {tested} tested, the others with a reason", rows.len());
    Ok(())
}

/// One line of the table.
struct Row<'a> {
    id: &'a str,
    who: &'a str,
    status: &'a str,
    tests: Vec<&'a str>,
    reason: &'a str,
}

fn rows(table: &str) -> Result<Vec<Row<'_>>> {
    let lines = table.lines().skip_while(|line| !line.starts_with("| ID |")).skip(2);
    let rows = lines.filter(|line| line.starts_with('|')).map(|line| {
        let ["", id, who, status, tests, reason, ""] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            bail!("{TABLE}: `{line}` has not 5 columns");
        };
        // What stands between pairs of backticks.
        Ok(Row { id, who, status, tests: tests.split('`').skip(1).step_by(2).collect(), reason })
    });
    rows.collect()
}

fn errors(ids: &str, table: &str, rows: &[Row<'_>], sources: &[(String, String)]) -> Result<Vec<String>> {
    let groups = table.lines().find_map(|line| line.strip_prefix("Groups covered: "));
    let groups = groups.with_context(|| format!("{TABLE} has no line `Groups covered: ..`"))?;
    let mut errors = Vec::new();
    let mut speaks_of = BTreeMap::new();
    for line in ids.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let [id, _level, who] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{REQUIREMENTS}: `{line}` has not 3 columns");
        };
        speaks_of.insert(id, who);
        let is_covered = groups.split(", ").any(|group| id.split('-').next() == Some(group));
        match rows.iter().filter(|row| row.id == id).count() {
            0 if is_covered => errors.push(format!("{id}: no row")),
            0 | 1 => {}
            rows => errors.push(format!("{id}: {rows} rows, not one")),
        }
    }
    for row in rows {
        if let Err(error) = row.check(speaks_of.get(row.id), sources) {
            errors.push(format!("{}: {error}", row.id));
        }
    }
    Ok(errors)
}

impl Row<'_> {
    fn check(&self, who: Option<&&str>, sources: &[(String, String)]) -> Result<()> {
        let who = who.with_context(|| format!("{REQUIREMENTS} has no such requirement"))?;
        ensure!(*who == self.who, "it speaks of `{who}`, the row says `{}`", self.who);
        let has_reason = self.reason.chars().count() >= 20;
        match self.status {
            "open" => bail!("still open"),
            "tested" if self.tests.is_empty() => bail!("tested, but names no test (in backticks)"),
            "not here" | "later" if self.tests.is_empty() && !has_reason => {
                bail!("a row without a test needs a reason of 20 characters")
            }
            "tested" | "not here" | "later" => {}
            status => bail!("`{status}` is no status"),
        }
        self.tests.iter().try_for_each(|test| self.names(test, sources))
    }

    /// Looks the test up and sees that it names the requirement.
    fn names(&self, test: &str, sources: &[(String, String)]) -> Result<()> {
        let (file, name) = match test.rsplit_once("::") {
            None if test.starts_with("ui-tests/") => (Some(test), None),
            None => (None, Some(test)),
            Some((file, name)) => (Some(file), Some(name)),
        };
        let files = sources.iter().filter(|(path, _)| file.is_none_or(|file| file == path));
        let texts = files.filter_map(|(path, text)| match name {
            None => Some(text.clone()),
            Some(name) => self::test(path, text, name),
        });
        match &texts.collect::<Vec<_>>()[..] {
            [] => bail!("there is no test `{test}`"),
            [text] => {
                let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
                ensure!(words.any(|word| word == self.id), "the test `{test}` does not name it");
                Ok(())
            }
            more => bail!("{} tests are called `{test}`; write `path::{test}`", more.len()),
        }
    }
}

/// The test of this name: what stands above it, its body, and what the file's head says of all tests in it.
fn test(path: &str, text: &str, name: &str) -> Option<String> {
    let is_python = path.ends_with(".py");
    let start = format!("{} {name}(", if is_python { "def" } else { "fn" });
    let lines: Vec<_> = text.contains(&start).then(|| text.lines().collect())?;
    let start = lines.iter().position(|line| line.trim_start().starts_with(&start))?;
    let above = start - lines[..start].iter().rev().take_while(|line| !line.is_empty()).count();
    let is_test = lines[above..start].iter().any(|line| line.trim() == "#[test]");
    if !(is_test || is_python && name.starts_with("test_")) {
        return None;
    }
    // Up to the next line that is not indented more than the function.
    let indent = lines[start].len() - lines[start].trim_start().len();
    let deeper = format!("{:indent$} ", "");
    let is_inside = |line: &&&str| line.starts_with(&deeper) || line.is_empty() || line.trim() == "):";
    let end = start + lines[start + 1..].iter().take_while(is_inside).count();
    let docstring = text.strip_prefix("\"\"\"").and_then(|rest| rest.split("\"\"\"").next());
    let head = lines.iter().take_while(|line| line.starts_with("//!")).chain(docstring.as_ref());
    Some(head.chain(&lines[above..=end]).map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "# id\tlevel\twho\nA-1\tMUST\tboth\nA-2\tMUST†\tproducer\nB-1\tMUST\tproducer\n";
    const SOURCES: [(&str, &str); 5] = [
        ("one.rs", "//! B-1.\n\n#[test]\nfn a() {\n    // A-1\n}\n\n/// A-2\n#[test]\nfn b() {}\n\n// A-1\nfn c() {}"),
        ("two.rs", "//! All of A-12.\n\n#[test]\nfn d() {}\n"),
        ("three.rs", "//! All of A-1.\n\n    #[test]\n    fn d() {\n    }\n"),
        ("ui-tests/no-data.rs", "// A-2\nstruct A;\n"),
        (
            "four.py",
            "\"\"\"B-1\"\"\"\n\n@a # A-2\ndef test_e(n):\n  # A-1\n\n\ndef test_f():\n  1\n\n\ndef g():\n  # A-1",
        ),
    ];
    const FIRST: &str = "| A-1 | both | tested | `a` | |\n";
    const SECOND: &str = "| A-2 | producer | tested | `one.rs::b`, `ui-tests/no-data.rs` | |\n";

    fn found(rows: &str) -> Vec<String> {
        let table = format!("Groups covered: A, C\n| ID | who | status | tests | reason |\n|---|\n{rows}");
        let sources = SOURCES.map(|(path, text)| (path.to_owned(), text.to_owned()));
        errors(IDS, &table, &super::rows(&table).unwrap(), &sources).unwrap()
    }

    #[test]
    fn each_broken_table_is_an_error() {
        assert_eq!(found(FIRST), ["A-2: no row"]);
        for (from, to, expected) in [
            ("both", "both", ""),
            ("`a`", "`three.rs::d`, `test_e`, `four.py::test_e`", ""),
            ("tested | `a` |", "not here | | only Python can see this", ""),
            ("| A-1", "| B-1 | producer | later | `a`, `test_f` | |\n| A-1", ""),
            ("| A-1", "| A-1 | both | tested | `a` | |\n| A-1", "A-1: 2 rows, not one"),
            ("| A-1", "| A-9 | both | tested | `a` | |\n| A-1", "A-9: spec/ids.tsv has no such requirement"),
            ("both", "consumer", "A-1: it speaks of `both`, the row says `consumer`"),
            ("`a`", "`z`", "A-1: there is no test `z`"),
            // Functions that are no tests.
            ("`a`", "`c`", "A-1: there is no test `c`"),
            ("`a`", "`g`", "A-1: there is no test `g`"),
            ("`a`", "`ui-tests/no-shape.rs`", "A-1: there is no test `ui-tests/no-shape.rs`"),
            ("`a`", "`b`", "A-1: the test `b` does not name it"),
            ("`a`", "`test_f`", "A-1: the test `test_f` does not name it"),
            ("`a`", "`two.rs::d`", "A-1: the test `two.rs::d` does not name it"),
            ("`a`", "`d`", "A-1: 2 tests are called `d`; write `path::d`"),
            ("`a`", "", "A-1: tested, but names no test (in backticks)"),
            ("tested | `a` |", "later | | not yet", "A-1: a row without a test needs a reason of 20 characters"),
            ("tested", "open", "A-1: still open"),
            ("tested", "testd", "A-1: `testd` is no status"),
        ] {
            let errors = found(&format!("{}{SECOND}", FIRST.replace(from, to)));
            assert_eq!(errors.join("; "), expected);
        }
    }

    #[test]
    fn the_list_of_requirements_is_whole() {
        let text = shell().unwrap().read_file(REQUIREMENTS).unwrap();
        let ids: std::collections::BTreeSet<_> = text.lines().map(|line| line.split('\t').next()).collect();
        assert_eq!((ids.len(), text.lines().count()), (232, 232));
    }
}
