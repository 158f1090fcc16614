//! Plants the bugs of a package behind run-time switches, in a copy of the workspace, and runs the tests for each.
//!
//! `cargo xtask mutants` runs this program; its help describes the usage.
//!
//! | file | job |
//! |---|---|
//! | `list` | which bugs there are: those of cargo-mutants, and those of `by-hand.txt` |
//! | `plant` | sources with switches |
//! | `build` | the copy of the workspace; which bugs compile |
//! | `tests` | how the tests of each package are built and found |
//! | `judge` | which places each test reaches, and whether a test notices a bug |
//! | `server` | a process of pytest that forks for each bug |
//! | `watch` | how long a process of tests may take |
//! | `outcome` | the verdicts, and their table |
//! | `planted.rs`, `planted_tests.py` | the switch itself, and the plugin of pytest: neither is part of this program |

mod build;
mod judge;
mod list;
mod outcome;
mod plant;
mod server;
mod tests;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::build::{CONSTANT, Garden, Sources, Tree};
use crate::judge::{Judge, Measured, Test, in_parallel, who_reaches};
use crate::list::{Mutant, mutants};
use crate::outcome::{Outcomes, Verdict, has_unsafe};

const BY_HAND: &str = include_str!("../by-hand.txt");

struct Options {
    /// Only bugs whose line in `bugs.tsv` contains one of these; all if there are none.
    bugs: Vec<String>,
    /// Also bugs whose verdict is alive.
    again: bool,
    /// Excludes test files whose names contain one of these.
    without: Vec<String>,
    /// The limit in seconds of the tests for a bug.
    seconds: f64,
    /// The number of bugs that are tried at the same time.
    jobs: usize,
    /// No bug is started after this time.
    end: Instant,
    /// Only prints the table.
    table: bool,
    /// A file of bugs that are equal, with reasons.
    equal: Option<PathBuf>,
}

/// One package with its bugs.
struct Session {
    /// `core`, `derive` or `pyo3`.
    target: String,
    tree: Tree,
    sources: Sources,
    mutants: Vec<Mutant>,
    outcomes: Outcomes,
    options: Options,
}

fn main() -> Result<()> {
    let mut args = pico_args::Arguments::from_env();
    let minutes: f64 = args.opt_value_from_str("--minutes")?.unwrap_or(100_000.0);
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    let without: String = args.opt_value_from_str("--without")?.unwrap_or_default();
    let options = Options {
        bugs: args.values_from_str("--bug")?,
        again: args.contains("--again"),
        without: without.split_whitespace().map(str::to_owned).collect(),
        seconds: args
            .opt_value_from_str("--seconds")?
            .unwrap_or(f64::INFINITY),
        jobs: args.opt_value_from_str("--jobs")?.unwrap_or(cores),
        end: Instant::now() + Duration::from_secs_f64(minutes * 60.0),
        table: args.contains("--table"),
        equal: args.opt_value_from_str("--equal")?,
    };
    let target: String = args
        .free_from_str()
        .context("which package? core, derive or pyo3")?;
    let left = args.finish();
    ensure!(left.is_empty(), "unexpected {left:?}");
    let session = Session::new(target, options)?;
    if let Some(file) = &session.options.equal {
        let judgements = fs::read_to_string(file)?;
        session
            .outcomes
            .judge_equal(&session.mutants, &judgements)?;
    } else if !session.options.table {
        session.run()?;
    }
    // Also after a run that was interrupted, whose results `--table` then records.
    session.outcomes.write_record(&session.mutants)?;
    let table = session.table()?;
    fs::write(session.tree.root.with_file_name("table.md"), &table)?;
    println!("{table}");
    Ok(())
}

/// A variable that `cargo xtask mutants` sets.
fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set; start `cargo xtask mutants`"))
}

impl Session {
    fn new(target: String, options: Options) -> Result<Self> {
        let package = format!("dlpack-{target}");
        let words = tests::words(&target)?;
        let folder = PathBuf::from(variable("MUTANTS_TARGET")?).join(&target);
        let tree = Tree {
            root: folder.join("tree"),
            target: folder.join("target"),
            package: package.clone(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let root = PathBuf::from(variable("MUTANTS_ROOT")?);
        // The bugs are listed in a copy without bugs.
        let original = Tree {
            root: folder.join("original"),
            ..tree.clone()
        };
        for tree in [&tree, &original] {
            fs::create_dir_all(&tree.root)?;
            tree.copy(&root)?;
        }
        let sources = original.sources()?;
        let program = PathBuf::from(variable("MUTANTS_PROGRAM")?);
        let mutants = mutants(&program, &original.root, &package, BY_HAND)?;
        // To inspect a bug, set PLANTED to its number and run a test.
        let line = |(index, mutant): (usize, &Mutant)| {
            let before = &sources[&mutant.file][..mutant.start];
            let (number, line) = (plant::number(index), before.matches('\n').count() + 1);
            format!("{number}\t{}\t{line}\n", mutant.key)
        };
        let lines: String = mutants.iter().enumerate().map(line).collect();
        fs::write(folder.join("bugs.tsv"), lines)?;
        let record = root.join("spec/mutants");
        let outcomes = Outcomes::open(
            folder.join("outcomes.tsv"),
            record.join(format!("{target}.txt")),
        )?;
        Ok(Self {
            target,
            tree,
            sources,
            mutants,
            outcomes,
            options,
        })
    }

    fn is_wanted(&self, mutant: &Mutant) -> bool {
        let words = &self.options.bugs;
        words.is_empty() || words.iter().any(|word| mutant.key.contains(word))
    }

    /// Whether all tests run that may notice a bug.
    fn is_whole(&self) -> bool {
        self.options.without.is_empty() && self.options.seconds.is_infinite()
    }

    fn is_over(&self) -> bool {
        Instant::now() > self.options.end
    }

    fn run(&self) -> Result<()> {
        let unfit = self.outcomes.unfit(&self.mutants);
        let garden = self.tree.plant(&self.sources, &self.mutants, unfit)?;
        self.remember_unfit(&garden)?;
        let judge = self.judge()?;
        let clock = Instant::now();
        let measured = judge.measure()?;
        let count = measured.tests.len();
        println!("mutants: {count} tests, in {:.0?}", clock.elapsed());
        self.run_reached(&garden, &judge, &measured)?;
        if self.is_whole() {
            self.run_alone(&garden, &judge, &measured.tests)?;
        }
        Ok(())
    }

    /// Records which bugs do not compile, and which of them may compile without a switch.
    fn remember_unfit(&self, garden: &Garden) -> Result<()> {
        for (&index, why) in &garden.unfit {
            let may_compile = why == CONSTANT || !TYPES.iter().any(|code| why.starts_with(code));
            let verdict = if may_compile {
                Verdict::Pending
            } else {
                Verdict::Uncompiled
            };
            if self.outcomes.of(&self.mutants[index]).is_none() {
                self.outcomes.add(&self.mutants[index], verdict, why)?;
            }
        }
        let (fit, unfit) = (garden.places.len(), garden.unfit.len());
        println!("mutants: {fit} compile behind a switch, {unfit} do not");
        Ok(())
    }

    /// The tests, without the excluded ones.
    fn judge(&self) -> Result<Judge> {
        fs::create_dir_all(self.tree.scratch())?;
        let mut judge = tests::judge(&self.target, &self.tree, self.options.jobs)?;
        judge.groups.retain(|(path, _)| {
            let words = &mut self.options.without.iter();
            !words.any(|word| path.to_string_lossy().contains(word))
        });
        Ok(judge)
    }

    /// Runs the bugs that tests reach, after those that no test reaches are recorded.
    fn run_reached(&self, garden: &Garden, judge: &Judge, measured: &Measured) -> Result<()> {
        let tests = &measured.tests;
        let mut by_place: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, test) in tests.iter().enumerate() {
            for &place in &test.reached {
                by_place.entry(place).or_default().push(index);
            }
        }
        let is_open = |index: &usize| match self.outcomes.of(&self.mutants[*index]) {
            None => true,
            Some((verdict, _)) => self.options.again && verdict.is_alive(),
        };
        let open = garden
            .places
            .keys()
            .copied()
            .filter(|&index| self.is_wanted(&self.mutants[index]));
        let (mut work, unreached): (Vec<_>, Vec<_>) = open
            .filter(is_open)
            .partition(|index| by_place.contains_key(&garden.places[index]));
        // Files with `unsafe` code first, in each half the fast ones, and the slow ones last, so that an interrupted run has
        // judged most bugs. Most of them are noticed by one of the first tests.
        let rank = |index: &usize| {
            let reaching = &by_place[&garden.places[index]];
            let mut seconds: Vec<f64> = reaching.iter().map(|&test| tests[test].seconds).collect();
            seconds.sort_by(f64::total_cmp);
            let seconds: f64 = seconds.iter().take(FIRST).sum();
            let is_safe = !has_unsafe(&self.sources[&self.mutants[*index].file]);
            (seconds > LONG, is_safe, seconds)
        };
        work.sort_by(|a, b| {
            rank(a)
                .partial_cmp(&rank(b))
                .expect("no test takes NaN seconds")
        });
        let count = work.len();
        println!(
            "mutants: {count} to run, {} more that no test reaches",
            unreached.len()
        );
        if self.is_whole() {
            self.look_for_unreached(&unreached.into_iter().collect())?;
        }
        in_parallel(
            judge.jobs,
            work.into_iter().enumerate().collect(),
            |worker, (nth, index)| {
                if self.is_over() {
                    return Ok(());
                }
                let (mutant, clock) = (&self.mutants[index], Instant::now());
                let place = garden.places[&index];
                let mut chosen = who_reaches(tests, &by_place, place, judge.runs_files());
                let from_start = measured.at_import.contains(&place);
                let mut left = self.options.seconds;
                chosen.retain(|test| {
                    left -= test.seconds;
                    left > 0.0
                });
                let by = judge.notices(plant::number(index), &chosen, from_start, worker)?;
                let verdict = by.as_ref().map_or(Verdict::Alive, |_| Verdict::Noticed);
                let why = by.unwrap_or_else(|| format!("{} tests", chosen.len()));
                println!(
                    "[{nth}/{count}] {verdict:?} in {:.1?}: {} | {why}",
                    clock.elapsed(),
                    mutant.key
                );
                // Excluded tests might notice a bug that the others do not.
                if verdict == Verdict::Alive && !self.is_whole() {
                    return Ok(());
                }
                self.outcomes.add(mutant, verdict, &why)
            },
        )
    }

    /// Distinguishes compiled code without tests from code that is not compiled, such as that for another system.
    fn look_for_unreached(&self, unreached: &BTreeSet<usize>) -> Result<()> {
        if unreached.is_empty() {
            return Ok(());
        }
        // In a separate copy, because cargo would rebuild the tests if the sources with switches changed.
        let broken = Tree {
            root: self.tree.root.with_file_name("broken"),
            ..self.tree.clone()
        };
        fs::create_dir_all(&broken.root)?;
        broken.copy(Path::new(&variable("MUTANTS_ROOT")?))?;
        let compiled = broken.compiled(&self.sources, &self.mutants, unreached)?;
        for index in unreached {
            let is_compiled = compiled.contains(index);
            let verdict = if is_compiled {
                Verdict::Unreached
            } else {
                Verdict::Uncompiled
            };
            self.outcomes
                .add(&self.mutants[*index], verdict, "no test reaches it")?;
        }
        Ok(())
    }

    /// Runs the bugs that only compile without a switch, one build for each. It is unknown which tests reach them.
    fn run_alone(&self, garden: &Garden, judge: &Judge, tests: &[Test]) -> Result<()> {
        let is_pending = |index: &usize| {
            let known = self.outcomes.of(&self.mutants[*index]);
            known.is_some_and(|known| known.0 == Verdict::Pending)
                && self.is_wanted(&self.mutants[*index])
        };
        let work: Vec<usize> = garden.unfit.keys().copied().filter(is_pending).collect();
        let mut tests: Vec<&Test> = tests.iter().collect();
        tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let count = work.len();
        for (nth, index) in work.into_iter().enumerate() {
            if self.is_over() {
                break;
            }
            let (mutant, clock) = (&self.mutants[index], Instant::now());
            let compiles = self
                .tree
                .plant_alone(&self.sources, &self.mutants, garden, index)?;
            let (verdict, why) = if compiles && tests::build(&self.target, &self.tree).is_ok() {
                match judge.notices(0, &tests, true, 0)? {
                    Some(by) => (Verdict::Noticed, by),
                    None => (Verdict::Alive, format!("{} tests", tests.len())),
                }
            } else {
                (Verdict::Uncompiled, garden.unfit[&index].clone())
            };
            println!(
                "[{nth}/{count} alone] {verdict:?} in {:.1?}: {} | {why}",
                clock.elapsed(),
                mutant.key
            );
            self.outcomes.add(mutant, verdict, &why)?;
        }
        Ok(())
    }

    fn table(&self) -> Result<String> {
        let wanted = self.mutants.iter().filter(|mutant| self.is_wanted(mutant));
        self.outcomes.table(&self.sources, wanted)
    }
}

/// A bug is slow if the first of the tests that reach it, this many, take this many seconds.
const FIRST: usize = 8;
const LONG: f64 = 2.0;

/// Errors about the type of a value, a missing trait or name, and a `match` with too few arms: they also occur without a switch.
const TYPES: [&str; 15] = [
    "E0004", "E0061", "E0271", "E0277", "E0282", "E0283", "E0308", "E0369", "E0425", "E0432",
    "E0433", "E0599", "E0600", "E0614", "E0624",
];
