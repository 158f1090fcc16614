//! The verdict for each bug, in a file to which each verdict is appended, so that a run continues where the last one stopped.
//!
//! The bugs that a test noticed are also listed in the repository, so that a run on another machine continues, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context as _, Result};

use crate::build::Sources;
use crate::list::{Mutant, hash};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A test failed.
    Noticed,
    /// All tests that reach it pass.
    Alive,
    /// Compiled, and reached by no test.
    Unreached,
    /// Does not compile, or its place is not compiled with these features on this target.
    Uncompiled,
    /// Compiles only without a switch, and was not run.
    Pending,
}

const WORDS: [(Verdict, &str); 5] = [
    (Verdict::Noticed, "noticed"),
    (Verdict::Alive, "alive"),
    (Verdict::Unreached, "unreached"),
    (Verdict::Uncompiled, "uncompiled"),
    (Verdict::Pending, "pending"),
];

pub struct Outcomes {
    path: PathBuf,
    known: Mutex<HashMap<String, Known>>,
    /// The list in the repository: the [`fingerprint`] of each bug with a verdict.
    record: PathBuf,
    recorded: BTreeMap<String, Verdict>,
}

#[derive(Clone)]
struct Known {
    function: u64,
    verdict: Verdict,
    why: String,
}

/// A hash of a bug and the text of its function.
fn fingerprint(mutant: &Mutant) -> String {
    format!("{:016x}", hash(&format!("{} {}", mutant.stamp, mutant.key)))
}

/// Whether a file has `unsafe` code.
pub fn has_unsafe(source: &str) -> bool {
    let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
    words.iter().any(|word| source.contains(word))
}

impl Verdict {
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Alive | Self::Unreached)
    }

    fn parse(word: &str) -> Result<Self> {
        let found = WORDS.iter().find(|found| found.1 == word);
        Ok(found.with_context(|| format!("`{word}` is no verdict"))?.0)
    }

    fn word(self) -> &'static str {
        let found = WORDS.iter().find(|found| found.0 == self);
        found.expect("all are there").1
    }
}

impl Outcomes {
    pub fn open(path: PathBuf, record: PathBuf) -> Result<Self> {
        let mut known = HashMap::new();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let words: Vec<_> = line.split('\t').collect();
            let [function, verdict, key, why] = words[..] else {
                continue;
            };
            let (function, verdict) = (function.parse()?, Verdict::parse(verdict)?);
            let why = why.to_owned();
            known.insert(
                key.to_owned(),
                Known {
                    function,
                    verdict,
                    why,
                },
            );
        }
        let mut recorded = BTreeMap::new();
        for line in fs::read_to_string(&record).unwrap_or_default().lines() {
            let (bug, word) = line.split_once(' ').unwrap_or((line, "noticed"));
            recorded.insert(bug.to_owned(), Verdict::parse(word)?);
        }
        Ok(Self {
            path,
            known: Mutex::new(known),
            record,
            recorded,
        })
    }

    /// Writes the list in the repository, without bugs of functions that have changed or were removed. Noticed bugs, which are
    /// most of them, have no word.
    pub fn write_record(&self, mutants: &[Mutant]) -> Result<()> {
        let line = |mutant: &Mutant| {
            let (bug, verdict) = (fingerprint(mutant), self.of(mutant)?.0);
            Some(match verdict {
                Verdict::Noticed => format!("{bug}\n"),
                other => format!("{bug} {}\n", other.word()),
            })
        };
        let lines: BTreeSet<_> = mutants.iter().filter_map(line).collect();
        fs::create_dir_all(self.record.parent().expect("a file in a folder"))?;
        Ok(fs::write(
            &self.record,
            lines.into_iter().collect::<String>(),
        )?)
    }

    /// The verdict for a bug, if its function is unchanged.
    pub fn of(&self, mutant: &Mutant) -> Option<(Verdict, String)> {
        let known = self.known.lock().expect("no panic");
        let found = known.get(&mutant.key);
        if let Some(found) = found.filter(|found| found.function == mutant.stamp) {
            return Some((found.verdict, found.why.clone()));
        }
        let recorded = self.recorded.get(&fingerprint(mutant))?;
        Some((*recorded, "recorded".to_owned()))
    }

    /// The bugs that did not compile behind a switch in an earlier run, which are not compiled again.
    pub fn unfit(&self, mutants: &[Mutant]) -> BTreeMap<usize, String> {
        let unfit = |(index, mutant): (usize, &Mutant)| match self.of(mutant)? {
            (Verdict::Uncompiled | Verdict::Pending, why) => Some((index, why)),
            _ => None,
        };
        mutants.iter().enumerate().filter_map(unfit).collect()
    }

    pub fn add(&self, mutant: &Mutant, verdict: Verdict, why: &str) -> Result<()> {
        let (function, word) = (mutant.stamp, verdict.word());
        let why = why.replace(['\t', '\n'], " ");
        let line = format!("{function}\t{word}\t{}\t{why}\n", mutant.key);
        let mut known = self.known.lock().expect("no panic");
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        file?.write_all(line.as_bytes())?;
        known.insert(
            mutant.key.clone(),
            Known {
                function,
                verdict,
                why,
            },
        );
        Ok(())
    }

    /// The table of `spec/mutants.md` for these bugs, and those that are alive.
    pub fn table<'a>(
        &self,
        sources: &Sources,
        mutants: impl Iterator<Item = &'a Mutant>,
    ) -> Result<String> {
        let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
        let (mut with_unsafe, mut without, mut all) =
            (Row::default(), Row::default(), Row::default());
        let mut alive = String::new();
        for mutant in mutants {
            let verdict = self.of(mutant);
            let is_unsafe = has_unsafe(&sources[&mutant.file]);
            let kind = if is_unsafe {
                &mut with_unsafe
            } else {
                &mut without
            };
            let row = rows.entry(&mutant.file).or_default();
            row.is_unsafe = is_unsafe;
            for row in [row, kind, &mut all] {
                row.add(verdict.as_ref().map(|found| found.0));
            }
            if let Some((Verdict::Alive | Verdict::Unreached, why)) = verdict {
                alive.push_str(&format!("{} ({why})\n", mutant.key));
            }
        }
        let mut text = "| files | mutants | compile | noticed | alive | not run | of 100 |\n|---|---|---|---|---|---|---|\n".to_owned();
        for (name, row) in [
            ("with `unsafe`", &with_unsafe),
            ("others", &without),
            ("all", &all),
        ] {
            text.push_str(&row.line(name));
        }
        text.push_str("\n| file | mutants | compile | noticed | alive | not run | of 100 |\n|---|---|---|---|---|---|---|\n");
        for (file, row) in rows
            .iter()
            .filter(|(_, row)| row.compiled() > 0 || row.pending > 0)
        {
            let file = file.split_once("/src/").map_or(*file, |(_, file)| file);
            text.push_str(&row.line(&format!(
                "`{file}`{}",
                if row.is_unsafe { " (unsafe)" } else { "" }
            )));
        }
        Ok(format!("{text}\nAlive:\n{alive}"))
    }
}

#[derive(Default)]
struct Row {
    all: usize,
    noticed: usize,
    alive: usize,
    pending: usize,
    is_unsafe: bool,
}

impl Row {
    fn add(&mut self, verdict: Option<Verdict>) {
        self.all += 1;
        match verdict {
            Some(Verdict::Noticed) => self.noticed += 1,
            Some(Verdict::Alive | Verdict::Unreached) => self.alive += 1,
            Some(Verdict::Uncompiled) => {}
            Some(Verdict::Pending) | None => self.pending += 1,
        }
    }

    fn compiled(&self) -> usize {
        self.noticed + self.alive
    }

    fn line(&self, name: &str) -> String {
        let (all, compiled, pending) = (self.all, self.compiled(), self.pending);
        let percent = 100.0 * self.noticed as f64 / compiled.max(1) as f64;
        let percent = if compiled == 0 {
            String::new()
        } else {
            format!("{percent:.1}")
        };
        format!(
            "| {name} | {all} | {compiled} | {} | {} | {pending} | {percent} |\n",
            self.noticed, self.alive
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Kind;

    #[test]
    fn a_verdict_holds_while_what_it_is_about_is_the_same() {
        let path = std::env::temp_dir().join(format!("outcomes-{}.tsv", std::process::id()));
        let mutant = |key: &str, stamp| Mutant {
            file: "a.rs".to_owned(),
            key: key.to_owned(),
            start: 0,
            end: 0,
            kind: Kind::Operator,
            replacement: String::new(),
            stamp,
        };
        let record = path.with_extension("record");
        let open = || Outcomes::open(path.clone(), record.clone()).unwrap();
        let first = open();
        first
            .add(&mutant("seen", 5), Verdict::Noticed, "by\ta test")
            .unwrap();
        first
            .add(&mutant("lives", 5), Verdict::Alive, "3 tests")
            .unwrap();
        let verdict = |outcomes: &Outcomes, key, stamp| Some(outcomes.of(&mutant(key, stamp))?.0);
        for outcomes in [&first, &open()] {
            assert_eq!(verdict(outcomes, "seen", 5), Some(Verdict::Noticed));
            assert_eq!(verdict(outcomes, "seen", 6), None);
            assert_eq!(verdict(outcomes, "lives", 5), Some(Verdict::Alive));
            assert_eq!(verdict(outcomes, "lives", 6), None);
        }
        let sources = Sources::from([("a.rs".to_owned(), "unsafe { f() }".to_owned())]);
        let mutants = [mutant("seen", 5), mutant("lives", 5), mutant("other", 5)];
        let table = first.table(&sources, mutants.iter()).unwrap();
        assert!(
            table.contains("| with `unsafe` | 3 | 2 | 1 | 1 | 1 | 50.0 |"),
            "{table}"
        );
        assert!(table.ends_with("Alive:\nlives (3 tests)\n"), "{table}");
        // On another machine only the record is known, for functions that are unchanged.
        let changed = mutant("changed", 5);
        first.add(&changed, Verdict::Noticed, "").unwrap();
        let text = mutant("text", 5);
        first.add(&text, Verdict::Uncompiled, "E0277").unwrap();
        let [seen, lives] = ["seen", "lives"].map(|key| mutant(key, 5));
        first
            .write_record(&[seen, lives, mutant("changed", 6), text])
            .unwrap();
        fs::remove_file(&path).unwrap();
        let elsewhere = open();
        assert_eq!(verdict(&elsewhere, "seen", 5), Some(Verdict::Noticed));
        assert_eq!(verdict(&elsewhere, "seen", 6), None);
        assert_eq!(verdict(&elsewhere, "lives", 5), Some(Verdict::Alive));
        assert_eq!(verdict(&elsewhere, "text", 5), Some(Verdict::Uncompiled));
        assert_eq!(verdict(&elsewhere, "changed", 5), None);
        fs::remove_file(record).unwrap();
    }
}
