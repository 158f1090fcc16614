//! The verdict for each bug, in a file to which each verdict is appended, so that a run continues where the last one stopped.
//!
//! The bugs that a test noticed are also listed in the repository, so that a run on another machine continues, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};

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
    /// Alive, and changes nothing that a test could see, as a reader judged, who gave a reason.
    Equal,
}

const WORDS: [(Verdict, &str); 6] = [
    (Verdict::Noticed, "noticed"),
    (Verdict::Alive, "alive"),
    (Verdict::Unreached, "unreached"),
    (Verdict::Uncompiled, "uncompiled"),
    (Verdict::Pending, "pending"),
    (Verdict::Equal, "equal"),
];

pub struct Outcomes {
    path: PathBuf,
    known: Mutex<HashMap<String, Known>>,
    /// The list in the repository: the [`fingerprint`] of each bug with a verdict, and the reason why it is equal.
    record: PathBuf,
    recorded: BTreeMap<String, (Verdict, String)>,
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
            let (word, why) = word.split_once(' ').unwrap_or((word, "recorded"));
            recorded.insert(bug.to_owned(), (Verdict::parse(word)?, why.to_owned()));
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
            let (bug, (verdict, why)) = (fingerprint(mutant), self.of(mutant)?);
            Some(match verdict {
                Verdict::Noticed => format!("{bug}\n"),
                Verdict::Equal => format!("{bug} {} {why}\n", verdict.word()),
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

    /// Records the judgements of a file, which has a bug and a reason in each line, with a tabulator between them.
    pub fn judge_equal(&self, mutants: &[Mutant], judgements: &str) -> Result<()> {
        for line in judgements.lines() {
            let (key, why) = line
                .split_once('\t')
                .with_context(|| format!("no reason: {line}"))?;
            let mutant = mutants.iter().find(|mutant| mutant.key == key);
            let mutant = mutant.with_context(|| format!("no such bug: {key}"))?;
            let known = self.of(mutant).map(|known| known.0);
            let is_judged = known.is_some_and(|known| known.is_alive() || known == Verdict::Equal);
            ensure!(
                is_judged,
                "only bugs that no test notices can be equal: {key} is {known:?}"
            );
            self.add(mutant, Verdict::Equal, why)?;
        }
        Ok(())
    }

    /// The verdict for a bug, if its function is unchanged.
    pub fn of(&self, mutant: &Mutant) -> Option<(Verdict, String)> {
        let recorded = || self.recorded.get(&fingerprint(mutant)).cloned();
        let known = self.known.lock().expect("no panic");
        let found = known.get(&mutant.key);
        let Some(found) = found.filter(|found| found.function == mutant.stamp) else {
            return recorded();
        };
        // A run cannot tell that a bug is equal.
        let is_equal =
            |recorded: &(Verdict, _)| found.verdict.is_alive() && recorded.0 == Verdict::Equal;
        let found = (found.verdict, found.why.clone());
        Some(recorded().filter(is_equal).unwrap_or(found))
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

    /// The tables of `spec/mutants.md` for these bugs, those that are equal, and those that are alive.
    pub fn table<'a>(
        &self,
        sources: &Sources,
        mutants: impl Iterator<Item = &'a Mutant>,
    ) -> Result<String> {
        let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
        let (mut with_unsafe, mut without, mut all) =
            (Row::default(), Row::default(), Row::default());
        let mut alive = String::new();
        let mut equal: BTreeMap<(&str, String), (usize, BTreeSet<&str>)> = BTreeMap::new();
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
            match verdict {
                Some((Verdict::Alive | Verdict::Unreached, why)) => {
                    alive.push_str(&format!("{} ({why})\n", mutant.key));
                }
                Some((Verdict::Equal, why)) => {
                    let (count, functions) = equal.entry((&mutant.file, why)).or_default();
                    *count += 1;
                    functions.extend(mutant.function());
                }
                _ => {}
            }
        }
        let mut text = format!("| files {HEAD}");
        for (name, row) in [
            ("with `unsafe`", &with_unsafe),
            ("others", &without),
            ("all", &all),
        ] {
            text.push_str(&row.line(name));
        }
        text.push_str(&format!("\n| file {HEAD}"));
        for (file, row) in rows
            .iter()
            .filter(|(_, row)| row.compiled() > 0 || row.pending > 0)
        {
            let of_unsafe = if row.is_unsafe { " (unsafe)" } else { "" };
            text.push_str(&row.line(&format!("`{}`{of_unsafe}", short(file))));
        }
        text.push_str("\n| equal | bugs | why |\n|---|---|---|\n");
        for ((file, why), (count, functions)) in equal {
            let names = functions.iter().map(|function| format!(", `{function}`"));
            let names: String = names.collect();
            text.push_str(&format!("| `{}`{names} | {count} | {why} |\n", short(file)));
        }
        Ok(format!("{text}\nAlive:\n{alive}"))
    }
}

/// The columns after the first one.
const HEAD: &str = "| bugs | compile | equal | noticed | alive | not run | of 100 |
|---|---|---|---|---|---|---|---|
";

/// The path of a file in the sources of its package.
fn short(file: &str) -> &str {
    file.split_once("/src/").map_or(file, |(_, file)| file)
}

#[derive(Default)]
struct Row {
    all: usize,
    noticed: usize,
    alive: usize,
    equal: usize,
    pending: usize,
    is_unsafe: bool,
}

impl Row {
    fn add(&mut self, verdict: Option<Verdict>) {
        self.all += 1;
        match verdict {
            Some(Verdict::Noticed) => self.noticed += 1,
            Some(Verdict::Alive | Verdict::Unreached) => self.alive += 1,
            Some(Verdict::Equal) => self.equal += 1,
            Some(Verdict::Uncompiled) => {}
            Some(Verdict::Pending) | None => self.pending += 1,
        }
    }

    fn compiled(&self) -> usize {
        self.noticed + self.alive + self.equal
    }

    fn line(&self, name: &str) -> String {
        let Self {
            all,
            noticed,
            alive,
            equal,
            pending,
            ..
        } = self;
        let (compiled, viable) = (self.compiled(), noticed + alive);
        let percent = match viable {
            0 => String::new(),
            _ => format!("{:.1}", 100.0 * *noticed as f64 / viable as f64),
        };
        format!(
            "| {name} | {all} | {compiled} | {equal} | {noticed} | {alive} | {pending} | {percent} |\n"
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
        let same = mutant("a.rs: delete ! in f<T>", 5);
        first.add(&same, Verdict::Alive, "2 tests").unwrap();
        let mutants = [
            mutant("seen", 5),
            mutant("lives", 5),
            mutant("other", 5),
            same,
        ];
        first
            .judge_equal(&mutants, "a.rs: delete ! in f<T>\tspeed")
            .unwrap();
        for unfit in ["seen\tspeed", "gone\tspeed", "lives"] {
            assert!(first.judge_equal(&mutants, unfit).is_err(), "{unfit}");
        }
        let table = first.table(&sources, mutants.iter()).unwrap();
        for line in [
            "| with `unsafe` | 4 | 3 | 1 | 1 | 1 | 1 | 50.0 |",
            "| `a.rs`, `f<T>` | 1 | speed |",
        ] {
            assert!(table.contains(line), "{table}");
        }
        assert!(table.ends_with("Alive:\nlives (3 tests)\n"), "{table}");
        // On another machine only the record is known, for functions that are unchanged.
        let changed = mutant("changed", 5);
        first.add(&changed, Verdict::Noticed, "").unwrap();
        let text = mutant("text", 5);
        first.add(&text, Verdict::Uncompiled, "E0277").unwrap();
        let [seen, lives] = ["seen", "lives"].map(|key| mutant(key, 5));
        first
            .write_record(&[seen, lives, mutant("changed", 6), text, mutants[3].clone()])
            .unwrap();
        fs::remove_file(&path).unwrap();
        let elsewhere = open();
        assert_eq!(verdict(&elsewhere, "seen", 5), Some(Verdict::Noticed));
        assert_eq!(verdict(&elsewhere, "seen", 6), None);
        assert_eq!(verdict(&elsewhere, "lives", 5), Some(Verdict::Alive));
        assert_eq!(verdict(&elsewhere, "text", 5), Some(Verdict::Uncompiled));
        assert_eq!(verdict(&elsewhere, "changed", 5), None);
        let equal = Some((Verdict::Equal, "speed".to_owned()));
        assert_eq!(elsewhere.of(&mutants[3]), equal);
        elsewhere
            .add(&mutants[3], Verdict::Alive, "2 tests")
            .unwrap();
        assert_eq!(elsewhere.of(&mutants[3]), equal);
        elsewhere
            .add(&mutants[3], Verdict::Noticed, "by a test")
            .unwrap();
        assert_eq!(
            elsewhere.of(&mutants[3]).map(|it| it.0),
            Some(Verdict::Noticed)
        );
        fs::remove_file(path).unwrap();
        fs::remove_file(record).unwrap();
    }
}
