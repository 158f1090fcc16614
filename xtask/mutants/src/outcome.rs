//! What became of each bug, kept in a file to which each verdict is appended: a run goes on where the last one stopped.
//!
//! The bugs that a test noticed are also listed in the repository, so that a run on another machine goes on as well.

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
    /// Compiles by itself only, and was not run.
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
    /// Stands for the text of the whole package and its tests.
    stamp: u64,
    known: Mutex<HashMap<String, Known>>,
    /// The list in the repository, of the [`fingerprint`]s of the bugs that a test noticed.
    record: PathBuf,
    recorded: BTreeSet<String>,
}

#[derive(Clone)]
struct Known {
    function: u64,
    package: u64,
    verdict: Verdict,
    why: String,
}

/// Stands for a bug and the text of its function.
fn fingerprint(mutant: &Mutant) -> String {
    format!("{:016x}", hash(&format!("{} {}", mutant.stamp, mutant.key)))
}

impl Outcomes {
    pub fn open(path: PathBuf, stamp: u64, record: PathBuf) -> Result<Self> {
        let mut known = HashMap::new();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let words: Vec<_> = line.split('\t').collect();
            let [function, package, verdict, key, why] = words[..] else {
                continue;
            };
            let found = WORDS.iter().find(|(_, word)| *word == verdict);
            let verdict = found.context("an outcome of another version")?.0;
            let (function, package, why) = (function.parse()?, package.parse()?, why.to_owned());
            known.insert(
                key.to_owned(),
                Known {
                    function,
                    package,
                    verdict,
                    why,
                },
            );
        }
        let recorded = fs::read_to_string(&record).unwrap_or_default();
        Ok(Self {
            path,
            stamp,
            known: Mutex::new(known),
            record,
            recorded: recorded.lines().map(str::to_owned).collect(),
        })
    }

    /// Writes the list in the repository. Bugs of functions that have changed or are gone leave it.
    pub fn write_record(&self, mutants: &[Mutant]) -> Result<()> {
        let is_noticed = |mutant: &&Mutant| matches!(self.of(mutant), Some((Verdict::Noticed, _)));
        let noticed: BTreeSet<_> = mutants.iter().filter(is_noticed).map(fingerprint).collect();
        let lines: String = noticed.iter().map(|line| format!("{line}\n")).collect();
        fs::create_dir_all(self.record.parent().expect("a file in a folder"))?;
        Ok(fs::write(&self.record, lines)?)
    }

    /// What is known of a bug: that it was noticed, while its function is the same; all else, while everything is.
    pub fn of(&self, mutant: &Mutant) -> Option<(Verdict, String)> {
        if self.recorded.contains(&fingerprint(mutant)) {
            return Some((Verdict::Noticed, "recorded".to_owned()));
        }
        let known = self.known.lock().expect("no panic");
        let found = known.get(&mutant.key)?;
        let holds = found.package == self.stamp || found.verdict == Verdict::Noticed;
        (holds && found.function == mutant.stamp).then(|| (found.verdict, found.why.clone()))
    }

    pub fn add(&self, mutant: &Mutant, verdict: Verdict, why: &str) -> Result<()> {
        let word = WORDS
            .iter()
            .find(|found| found.0 == verdict)
            .expect("all are there")
            .1;
        let why = why.replace(['\t', '\n'], " ");
        let mut known = self.known.lock().expect("no panic");
        let line = format!(
            "{}\t{}\t{word}\t{}\t{why}\n",
            mutant.stamp, self.stamp, mutant.key
        );
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        file?.write_all(line.as_bytes())?;
        let (function, package) = (mutant.stamp, self.stamp);
        known.insert(
            mutant.key.clone(),
            Known {
                function,
                package,
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
            let source = &sources[&mutant.file];
            let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
            let is_unsafe = words.iter().any(|word| source.contains(word));
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
        let open = |stamp| Outcomes::open(path.clone(), stamp, record.clone()).unwrap();
        let first = open(1);
        first
            .add(&mutant("seen", 5), Verdict::Noticed, "by\ta test")
            .unwrap();
        first
            .add(&mutant("lives", 5), Verdict::Alive, "3 tests")
            .unwrap();
        let verdict = |outcomes: &Outcomes, key, stamp| Some(outcomes.of(&mutant(key, stamp))?.0);
        for outcomes in [&first, &open(1)] {
            assert_eq!(verdict(outcomes, "seen", 5), Some(Verdict::Noticed));
            assert_eq!(verdict(outcomes, "lives", 5), Some(Verdict::Alive));
        }
        // A test was added: what lives is tried again. A function was changed: so is what was noticed.
        let changed = open(2);
        assert_eq!(verdict(&changed, "seen", 5), Some(Verdict::Noticed));
        assert_eq!(verdict(&changed, "lives", 5), None);
        assert_eq!(verdict(&changed, "seen", 6), None);
        let sources = Sources::from([("a.rs".to_owned(), "unsafe { f() }".to_owned())]);
        let mutants = [mutant("seen", 5), mutant("lives", 5), mutant("other", 5)];
        let table = first.table(&sources, mutants.iter()).unwrap();
        assert!(
            table.contains("| with `unsafe` | 3 | 2 | 1 | 1 | 1 | 50.0 |"),
            "{table}"
        );
        assert!(table.ends_with("Alive:\nlives (3 tests)\n"), "{table}");
        // On another machine only the record is known, of the functions that are the same.
        let changed = mutant("changed", 5);
        first.add(&changed, Verdict::Noticed, "").unwrap();
        let [seen, lives] = ["seen", "lives"].map(|key| mutant(key, 5));
        first
            .write_record(&[seen, lives, mutant("changed", 6)])
            .unwrap();
        fs::remove_file(&path).unwrap();
        let elsewhere = open(3);
        assert_eq!(verdict(&elsewhere, "seen", 5), Some(Verdict::Noticed));
        assert_eq!(verdict(&elsewhere, "seen", 6), None);
        assert_eq!(verdict(&elsewhere, "lives", 5), None);
        assert_eq!(verdict(&elsewhere, "changed", 5), None);
        fs::remove_file(record).unwrap();
    }
}
