//! `coverage`: every requirement has a test that names it, or a reason why it has none.

use crate::args::Args;
use crate::source::has_word;
use crate::step::root;
use crate::tree::{files, read, relative};

pub(crate) const HELP: &str = "
Reads spec/coverage.md and checks it against spec/ids.tsv and the sources:
  every requirement of the groups named under `Groups covered:` has exactly one row
  every test that a row names exists, and names the requirement
  every row without a test has a reason

usage: cargo xtask coverage
";

const TABLE: &str = "spec/coverage.md";
const SHORTEST_REASON: usize = 20;

pub(crate) fn main(args: Args) -> Result<(), String> {
    args.finish()?;
    check()
}

pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let ids = ids(&read(&root.join("spec/ids.tsv"))?)?;
    let table = Table::parse(&read(&root.join(TABLE))?)?;
    let mut sources = Vec::new();
    for path in [files(&root, "rs")?, files(&root, "py")?].concat() {
        sources.push(Source {
            path: relative(&root, &path),
            text: read(&path)?,
        });
    }
    let errors = table.errors(&ids, &sources);
    if errors.is_empty() {
        let count = |status| table.rows.iter().filter(|row| row.status == status).count();
        println!(
            "coverage: {} requirements in {} groups: {} tested, {} not here, {} later",
            table.rows.len(),
            table.groups.len(),
            count("tested"),
            count("not here"),
            count("later"),
        );
        return Ok(());
    }
    Err(format!(
        "{}\n{} errors in {TABLE}",
        errors.join("\n"),
        errors.len()
    ))
}

/// One requirement of the standard's checklist.
struct Requirement {
    id: String,
    who: String,
}

/// One line of the table.
struct Row {
    id: String,
    who: String,
    status: String,
    tests: Vec<String>,
    reason: String,
}

impl Source {
    /// The text of a test, with what its file says of all tests in it.
    fn test(&self, name: &str) -> Option<String> {
        if self.path.ends_with(".py") {
            return Some(format!(
                "{}{}",
                python_header(&self.text),
                python_function(&self.text, name)?
            ));
        }
        Some(format!(
            "{}{}",
            header(&self.text),
            function(&self.text, name)?
        ))
    }
}

struct Table {
    groups: Vec<String>,
    rows: Vec<Row>,
}

/// A file in Rust or Python, by its path in the repository.
struct Source {
    path: String,
    text: String,
}

fn ids(text: &str) -> Result<Vec<Requirement>, String> {
    let mut ids = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, _level, who] = columns[..] else {
            return Err(format!(
                "spec/ids.tsv: `{line}` has {} columns, not 3",
                columns.len()
            ));
        };
        ids.push(Requirement {
            id: id.to_owned(),
            who: who.to_owned(),
        });
    }
    Ok(ids)
}

impl Table {
    fn parse(text: &str) -> Result<Self, String> {
        let groups = text
            .lines()
            .find_map(|line| line.strip_prefix("Groups covered: "))
            .ok_or_else(|| format!("{TABLE} has no line `Groups covered: ..`"))?;
        let groups = groups
            .split(',')
            .map(|group| group.trim().to_owned())
            .collect();

        let mut rows = Vec::new();
        for line in text
            .lines()
            .skip_while(|line| !line.starts_with("| ID |"))
            .skip(2)
        {
            let Some(cells) = line
                .strip_prefix('|')
                .and_then(|line| line.trim_end().strip_suffix('|'))
            else {
                continue;
            };
            let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
            let [id, who, status, tests, reason] = cells[..] else {
                return Err(format!(
                    "{TABLE}: `{line}` has {} columns, not 5",
                    cells.len()
                ));
            };
            rows.push(Row {
                id: id.to_owned(),
                who: who.to_owned(),
                status: status.to_owned(),
                tests: backticked(tests),
                reason: reason.to_owned(),
            });
        }
        Ok(Self { groups, rows })
    }

    fn errors(&self, ids: &[Requirement], sources: &[Source]) -> Vec<String> {
        let mut errors = Vec::new();
        for requirement in ids {
            let rows = self
                .rows
                .iter()
                .filter(|row| row.id == requirement.id)
                .count();
            let covered = self
                .groups
                .iter()
                .any(|group| group == group_of(&requirement.id));
            match (covered, rows) {
                (true, 0) => errors.push(format!("{}: no row", requirement.id)),
                (_, 0 | 1) => {}
                (_, rows) => errors.push(format!("{}: {rows} rows, not one", requirement.id)),
            }
        }
        for row in &self.rows {
            match ids.iter().find(|requirement| requirement.id == row.id) {
                None => errors.push(format!("{}: spec/ids.tsv has no such requirement", row.id)),
                Some(requirement) if requirement.who != row.who => errors.push(format!(
                    "{}: it speaks of `{}`, the row says `{}`",
                    row.id, requirement.who, row.who
                )),
                Some(_) => {}
            }
            if let Err(message) = row.check(sources) {
                errors.push(format!("{}: {message}", row.id));
            }
        }
        errors
    }
}

impl Row {
    fn check(&self, sources: &[Source]) -> Result<(), String> {
        match (self.status.as_str(), self.tests.len()) {
            ("open", _) => return Err("still open".into()),
            ("tested", 0) => return Err("tested, but names no test (in backticks)".into()),
            ("tested", _) => {}
            ("not here" | "later", 0) if self.reason.chars().count() < SHORTEST_REASON => {
                return Err(format!(
                    "{} without a test needs a reason of {SHORTEST_REASON} characters or more",
                    self.status
                ));
            }
            ("not here" | "later", _) => {}
            (status, _) => return Err(format!("`{status}` is no status")),
        }
        for test in &self.tests {
            find_test(test, &self.id, sources)?;
        }
        Ok(())
    }
}

/// Looks the test up and sees that it names the requirement.
fn find_test(test: &str, id: &str, sources: &[Source]) -> Result<(), String> {
    let texts: Vec<String> = if test.starts_with("ui-tests/") && test.ends_with(".rs") {
        sources
            .iter()
            .filter(|source| source.path == test)
            .map(|source| source.text.clone())
            .collect()
    } else {
        let (path, name) = match test.rsplit_once("::") {
            Some((path, name)) => (Some(path), name),
            None => (None, test),
        };
        sources
            .iter()
            .filter(|source| path.is_none_or(|path| source.path == path))
            .filter_map(|source| source.test(name))
            .collect()
    };
    match &texts[..] {
        [] => Err(format!("there is no test `{test}`")),
        [text] if has_word(text, id) => Ok(()),
        [_] => Err(format!("the test `{test}` does not name {id}")),
        more => Err(format!(
            "{} tests are called `{test}`; write `path::{test}`",
            more.len()
        )),
    }
}

fn group_of(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// What stands between pairs of backticks.
fn backticked(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The `//!` lines that a file begins with.
fn header(text: &str) -> String {
    text.lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The test function of this name: the comments and attributes above it, and its body.
///
/// The end is the closing brace under the function's own indentation, where rustfmt puts it.
fn function(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| is_function(line, name))?;
    let above = lines[..start]
        .iter()
        .rev()
        .take_while(|line| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("#[") || line.ends_with(")]")
        })
        .count();
    let attributes = &lines[start - above..start];
    if !attributes.iter().any(|line| line.trim() == "#[test]") {
        return None;
    }
    let indent = lines[start].len() - lines[start].trim_start().len();
    let close = format!("{}}}", &lines[start][..indent]);
    let end = if lines[start].trim_end().ends_with('}') {
        start
    } else {
        start
            + lines[start..]
                .iter()
                .position(|line| line.trim_end() == close)?
    };
    Some(lines[start - above..=end].join("\n"))
}

/// The docstring that a Python file begins with.
fn python_header(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("\"\"\"") else {
        return "";
    };
    rest.split("\"\"\"").next().unwrap_or("")
}

/// A Python test and the decorators above it, up to the next line that is not indented more than its `def`.
fn python_function(text: &str, name: &str) -> Option<String> {
    if !name.starts_with("test_") {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let start = lines.iter().position(|line| {
        line.trim_start()
            .strip_prefix("def ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    })?;
    let above = lines[..start]
        .iter()
        .rev()
        .take_while(|line| !line.trim().is_empty())
        .count();
    let inside = lines[start + 1..]
        .iter()
        .take_while(|line| {
            line.trim().is_empty() || indent(line) > indent(lines[start]) || line.trim() == "):"
        })
        .count();
    Some(lines[start - above..=start + inside].join("\n"))
}

fn is_function(line: &str, name: &str) -> bool {
    line.trim_start()
        .strip_prefix("fn ")
        .and_then(|rest| rest.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with(['(', '<']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str =
        "# id\tlevel\twho\nABI-01\tMUST\tboth\nABI-02\tMUST†\tproducer\nCAP-01\tMUST\tproducer\n";

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.into(),
            text: text.into(),
        }
    }

    fn sources() -> Vec<Source> {
        vec![
            source(
                "core/tests/abi.rs",
                "//! Layout.\n\n#[test]\nfn sizes() {\n    // ABI-01\n    assert!(true);\n}\n\n\
                 /// ABI-02: open enums.\n#[test]\nfn open() {\n    f();\n}\n\n\
                 fn helper() {\n    // ABI-01\n}\n",
            ),
            source("core/tests/two.rs", "#[test]\nfn twice() {}\n"),
            source(
                "core/tests/three.rs",
                "#[test]\nfn twice() {\n    // ABI-01\n}\n",
            ),
            source("ui-tests/ui/rule/no-data.rs", "// ABI-02\nstruct A;\n"),
            source(
                "py/test_abi.py",
                "\"\"\"Sizes.\"\"\"\n\n@pytest.mark.parametrize(\"n\", [1])  # ABI-02\ndef test_size(n):\n    \"\"\"ABI-01: eight.\"\"\"\n\n    \
                 assert n\n\n\ndef test_other():\n    pass\n\n\ndef helper():\n    \"\"\"ABI-01\"\"\"\n",
            ),
        ]
    }

    fn errors(rows: &str) -> Vec<String> {
        let text = format!(
            "# Title\n\nGroups covered: ABI\n\n| ID | who | status | tests | reason |\n|---|---|---|---|---|\n{rows}"
        );
        Table::parse(&text)
            .unwrap()
            .errors(&ids(IDS).unwrap(), &sources())
    }

    const FIRST: &str = "| ABI-01 | both | tested | `sizes` | |\n";
    const SECOND: &str = "| ABI-02 | producer | tested | `core/tests/abi.rs::open`, `ui-tests/ui/rule/no-data.rs` | |\n";

    #[test]
    fn a_complete_table_passes() {
        assert_eq!(errors(&format!("{FIRST}{SECOND}")), [""; 0]);
    }

    #[test]
    fn a_missing_row_is_an_error() {
        assert_eq!(errors(FIRST), ["ABI-02: no row"]);
    }

    #[test]
    fn a_row_given_twice_is_an_error() {
        assert_eq!(
            errors(&format!("{FIRST}{FIRST}{SECOND}")),
            ["ABI-01: 2 rows, not one"]
        );
    }

    #[test]
    fn an_invented_requirement_is_an_error() {
        let row = "| ABI-99 | both | later | | comes with the Python layer |\n";
        let found = errors(&format!("{FIRST}{SECOND}{row}"));
        assert_eq!(found, ["ABI-99: spec/ids.tsv has no such requirement"]);
    }

    #[test]
    fn the_role_must_be_the_standards() {
        let found = errors(&format!("{}{SECOND}", FIRST.replace("both", "consumer")));
        assert_eq!(
            found,
            ["ABI-01: it speaks of `both`, the row says `consumer`"]
        );
    }

    #[test]
    fn an_unknown_test_is_an_error() {
        let found = errors(&format!("{}{SECOND}", FIRST.replace("sizes", "weights")));
        assert_eq!(found, ["ABI-01: there is no test `weights`"]);
        let found = errors(&format!("{FIRST}{}", SECOND.replace("no-data", "no-shape")));
        assert_eq!(
            found,
            ["ABI-02: there is no test `ui-tests/ui/rule/no-shape.rs`"]
        );
    }

    #[test]
    fn a_function_that_is_no_test_does_not_count() {
        let found = errors(&format!("{}{SECOND}", FIRST.replace("sizes", "helper")));
        assert_eq!(found, ["ABI-01: there is no test `helper`"]);
    }

    #[test]
    fn a_test_must_name_the_requirement() {
        let found = errors(&format!("{}{SECOND}", FIRST.replace("sizes", "open")));
        assert_eq!(found, ["ABI-01: the test `open` does not name ABI-01"]);
    }

    #[test]
    fn a_name_used_twice_needs_its_path() {
        let found = errors(&format!("{}{SECOND}", FIRST.replace("sizes", "twice")));
        assert_eq!(
            found,
            ["ABI-01: 2 tests are called `twice`; write `path::twice`"]
        );
        let with_path = FIRST.replace("sizes", "core/tests/three.rs::twice");
        assert_eq!(errors(&format!("{with_path}{SECOND}")), [""; 0]);
    }

    #[test]
    fn a_row_without_a_test_needs_a_reason() {
        let short = "| ABI-01 | both | not here | | no |\n";
        assert_eq!(
            errors(&format!("{short}{SECOND}")),
            ["ABI-01: not here without a test needs a reason of 20 characters or more"]
        );
        let long = "| ABI-01 | both | not here | | only a Python consumer can see this |\n";
        assert_eq!(errors(&format!("{long}{SECOND}")), [""; 0]);
        let bare = "| ABI-01 | both | tested | | only a Python consumer can see this |\n";
        assert_eq!(
            errors(&format!("{bare}{SECOND}")),
            ["ABI-01: tested, but names no test (in backticks)"]
        );
    }

    #[test]
    fn an_open_row_is_an_error() {
        let open = "| ABI-01 | both | open | | |\n";
        assert_eq!(errors(&format!("{open}{SECOND}")), ["ABI-01: still open"]);
        let typo = "| ABI-01 | both | testd | `sizes` | |\n";
        assert_eq!(
            errors(&format!("{typo}{SECOND}")),
            ["ABI-01: `testd` is no status"]
        );
    }

    #[test]
    fn the_head_of_a_file_speaks_for_its_tests() {
        let text = "//! All of ABI-01.\n\n#[test]\nfn a() {\n}\n";
        assert!(find_test("a", "ABI-01", &[source("a.rs", text)]).is_ok());
    }

    #[test]
    fn a_python_test_counts_and_its_helpers_do_not() {
        let with = |test: &str| errors(&format!("{}{SECOND}", FIRST.replace("sizes", test)));
        assert_eq!(with("test_size"), [""; 0]);
        assert_eq!(
            with("test_other"),
            ["ABI-01: the test `test_other` does not name ABI-01"]
        );
        assert_eq!(with("helper"), ["ABI-01: there is no test `helper`"]);
        let second = SECOND.replace("`core/tests/abi.rs::open`", "`py/test_abi.py::test_size`");
        assert_eq!(errors(&format!("{FIRST}{second}")), [""; 0]);
    }

    #[test]
    fn the_list_of_requirements_is_whole() {
        let ids = ids(&read(&root().join("spec/ids.tsv")).unwrap()).unwrap();
        assert_eq!(ids.len(), 231);
        let mut names: Vec<&str> = ids
            .iter()
            .map(|requirement| requirement.id.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 231);
    }
}
