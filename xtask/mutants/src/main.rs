//! Plants the bugs of a package behind run-time switches, in a copy of the workspace, and runs the tests for each.
//!
//! `cargo xtask mutants` starts this program, and says there how it is used.
//!
//! | file | job |
//! |---|---|
//! | `list` | which bugs there are: those of cargo-mutants, and those of `by-hand.txt` |
//! | `plant` | sources with switches |
//! | `build` | the copy of the workspace; which bugs compile |
//! | `tests` | how the tests of each package are built and found |
//! | `judge` | which places each test reaches, and whether a test notices a bug |
//! | `outcome` | the verdicts, and their table |
//! | `planted.rs`, `planted_tests.py` | the switch itself, and the plugin of pytest: neither is part of this program |

mod build;
mod judge;
mod list;
mod outcome;
mod plant;
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::build::{CONSTANT, Garden, Sources, Tree};
use crate::judge::{Judge, Test, in_parallel, who_reaches};
use crate::list::{Mutant, hash, mutants};
use crate::outcome::{Outcomes, Verdict};

const BY_HAND: &str = include_str!("../by-hand.txt");

struct Options {
    /// Only bugs of files whose path contains this.
    file: String,
    /// Without the test files whose names contain one of these.
    without: Vec<String>,
    /// Tests of so many seconds are enough for a bug.
    seconds: f64,
    /// How many bugs are tried at the same time.
    jobs: usize,
    /// No bug is tried any more then.
    end: Instant,
    /// Nothing is run.
    table: bool,
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
        file: args.opt_value_from_str("--file")?.unwrap_or_default(),
        without: without.split_whitespace().map(str::to_owned).collect(),
        seconds: args
            .opt_value_from_str("--seconds")?
            .unwrap_or(f64::INFINITY),
        jobs: args.opt_value_from_str("--jobs")?.unwrap_or(cores),
        end: Instant::now() + Duration::from_secs_f64(minutes * 60.0),
        table: args.contains("--table"),
    };
    let target: String = args
        .free_from_str()
        .context("which package? core, derive or pyo3")?;
    let left = args.finish();
    ensure!(left.is_empty(), "unexpected {left:?}");
    let session = Session::new(target, options)?;
    if !session.options.table {
        session.run()?;
    }
    // Also after a run that was interrupted: `--table` then records what it found.
    session.outcomes.write_record(&session.mutants)?;
    let table = session.table()?;
    fs::write(session.tree.root.with_file_name("table.md"), &table)?;
    println!("{table}");
    Ok(())
}

/// What `cargo xtask mutants` says.
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
        fs::create_dir_all(&folder)?;
        tree.copy(Path::new(&variable("MUTANTS_ROOT")?))?;
        let sources = tree.sources()?;
        let program = PathBuf::from(variable("MUTANTS_PROGRAM")?);
        let mutants = mutants(&program, &tree.root, &package, BY_HAND)?;
        // Who wants to look at a bug sets PLANTED to its number and runs a test.
        let line = |(index, mutant): (usize, &Mutant)| {
            format!("{}\t{}\n", plant::number(index), mutant.key)
        };
        let lines: String = mutants.iter().enumerate().map(line).collect();
        fs::write(folder.join("bugs.tsv"), lines)?;
        let record = Path::new(&variable("MUTANTS_ROOT")?).join("spec/mutants");
        let outcomes = Outcomes::open(
            folder.join("outcomes.tsv"),
            stamp(&tree, &target)?,
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

    fn is_wanted(&self, index: usize) -> bool {
        self.mutants[index].file.contains(&self.options.file)
    }

    /// Whether all tests are run that may notice a bug.
    fn is_whole(&self) -> bool {
        self.options.without.is_empty() && self.options.seconds.is_infinite()
    }

    fn is_over(&self) -> bool {
        Instant::now() > self.options.end
    }

    fn run(&self) -> Result<()> {
        let garden = self.tree.plant(&self.sources, &self.mutants)?;
        self.remember_unfit(&garden)?;
        let judge = self.judge()?;
        let clock = Instant::now();
        let tests = judge.measure()?;
        println!("mutants: {} tests, in {:.0?}", tests.len(), clock.elapsed());
        let unreached = self.run_reached(&garden, &judge, &tests)?;
        if self.is_whole() {
            self.look_for_unreached(&unreached)?;
            self.run_alone(&garden, &judge, &tests)?;
        }
        Ok(())
    }

    /// Notes which bugs do not compile, and which of them may do so without a switch.
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

    /// The tests, but for those that are left out.
    fn judge(&self) -> Result<Judge> {
        fs::create_dir_all(self.tree.scratch())?;
        let mut judge = tests::judge(&self.target, &self.tree, self.options.jobs)?;
        judge.groups.retain(|(path, _)| {
            let words = &mut self.options.without.iter();
            !words.any(|word| path.to_string_lossy().contains(word))
        });
        Ok(judge)
    }

    /// Runs the bugs that tests reach; gives those that none reaches.
    fn run_reached(
        &self,
        garden: &Garden,
        judge: &Judge,
        tests: &[Test],
    ) -> Result<BTreeSet<usize>> {
        let mut by_place: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, test) in tests.iter().enumerate() {
            for &place in &test.reached {
                by_place.entry(place).or_default().push(index);
            }
        }
        let is_open = |index: &usize| self.outcomes.of(&self.mutants[*index]).is_none();
        let open = garden
            .places
            .keys()
            .copied()
            .filter(|&index| self.is_wanted(index));
        let (mut work, unreached): (Vec<_>, Vec<_>) = open
            .filter(is_open)
            .partition(|index| by_place.contains_key(&garden.places[index]));
        // The cheap ones first: an interrupted run has then judged most bugs.
        let seconds = |index: &usize| -> f64 {
            let reaching = &by_place[&garden.places[index]];
            reaching.iter().map(|&test| tests[test].seconds).sum()
        };
        work.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let count = work.len();
        println!(
            "mutants: {count} to run, {} more that no test reaches",
            unreached.len()
        );
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
                let mut left = self.options.seconds;
                chosen.retain(|test| {
                    left -= test.seconds;
                    left > 0.0
                });
                let by = judge.notices(plant::number(index), &chosen, worker)?;
                let verdict = by.as_ref().map_or(Verdict::Alive, |_| Verdict::Noticed);
                let why = by.unwrap_or_else(|| format!("{} tests", chosen.len()));
                println!(
                    "[{nth}/{count}] {verdict:?} in {:.1?}: {} | {why}",
                    clock.elapsed(),
                    mutant.key
                );
                // Tests that are left out might notice what the others do not.
                if verdict == Verdict::Alive && !self.is_whole() {
                    return Ok(());
                }
                self.outcomes.add(mutant, verdict, &why)
            },
        )?;
        Ok(unreached.into_iter().collect())
    }

    /// Tells what is compiled and not tested from what is not compiled, as for another system.
    fn look_for_unreached(&self, unreached: &BTreeSet<usize>) -> Result<()> {
        if unreached.is_empty() {
            return Ok(());
        }
        let compiled = self
            .tree
            .compiled(&self.sources, &self.mutants, unreached)?;
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

    /// Runs the bugs that only compile without a switch, one build for each. Which tests reach them is not known.
    fn run_alone(&self, garden: &Garden, judge: &Judge, tests: &[Test]) -> Result<()> {
        let is_pending = |index: &usize| {
            let known = self.outcomes.of(&self.mutants[*index]);
            known.is_some_and(|known| known.0 == Verdict::Pending) && self.is_wanted(*index)
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
                match judge.notices(0, &tests, 0)? {
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
        let wanted = self
            .mutants
            .iter()
            .filter(|mutant| mutant.file.contains(&self.options.file));
        self.outcomes.table(&self.sources, wanted)
    }
}

/// Stands for the sources of a package and its tests.
fn stamp(tree: &Tree, target: &str) -> Result<u64> {
    let folders: &[&str] = match target {
        "pyo3" => &["dlpack-pyo3", "dlpack-core/src"],
        "core" => &["dlpack-core", "dlpack-derive/src"],
        _ => &["dlpack-derive"],
    };
    let mut stamp = String::new();
    for folder in folders {
        for (path, text) in build::texts(&tree.root.join(folder), &["rs", "py"])? {
            let path = path.strip_prefix(&tree.root)?.display();
            stamp.push_str(&format!("{path} {}\n", hash(&text)));
        }
    }
    Ok(hash(&stamp))
}

/// Errors of a value that has another type, lacks a trait or is not there, and of a `match` with too few arms: these are the
/// same without a switch.
const TYPES: [&str; 15] = [
    "E0004", "E0061", "E0271", "E0277", "E0282", "E0283", "E0308", "E0369", "E0425", "E0432",
    "E0433", "E0599", "E0600", "E0614", "E0624",
];
