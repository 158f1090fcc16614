//! The tests: which there are, which places each reaches, and whether one of them notices a bug.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// One test, as it ran without a bug.
#[derive(Clone, Debug)]
pub struct Test {
    pub name: String,
    /// The file or the program that has it, which runs as one process.
    pub group: usize,
    pub seconds: f64,
    /// The places that it reaches.
    pub reached: BTreeSet<usize>,
}

/// Who runs the tests.
pub enum Runner {
    Pytest {
        python: PathBuf,
        /// The folder of `dlpack_probe`, and that of the plugin.
        path: String,
    },
    /// The programs that `cargo test` builds.
    Programs,
}

pub struct Judge {
    pub runner: Runner,
    /// Test files, or test programs with the folder in which each starts.
    pub groups: Vec<(PathBuf, PathBuf)>,
    /// For what the tests write.
    pub scratch: PathBuf,
    pub jobs: usize,
}

/// No limit of processor time.
const UNLIMITED: &str = "unlimited";

/// How a process of tests ended.
enum End {
    Passed,
    /// A test failed, or all of it crashed or hung.
    Failed(String),
}

impl Judge {
    /// Runs every test without a bug. A test that fails then judges nothing.
    pub fn measure(&self) -> Result<Vec<Test>> {
        let measure = |group| match self.runner {
            Runner::Pytest { .. } => self.measure_file(group),
            Runner::Programs => self.measure_program(group),
        };
        let found = Mutex::new(Vec::new());
        in_parallel(self.jobs, (0..self.groups.len()).collect(), |_, group| {
            let tests = measure(group)?;
            found.lock().expect("no panic").extend(tests);
            Ok(())
        })?;
        let mut tests = found.into_inner().expect("no panic");
        ensure!(!tests.is_empty(), "no test passes without a bug");
        tests.sort_by(|a, b| (a.group, &a.name).cmp(&(b.group, &b.name)));
        Ok(tests)
    }

    fn measure_file(&self, group: usize) -> Result<Vec<Test>> {
        let record = self.scratch.join(format!("reached-{group}"));
        let _ = fs::remove_file(&record);
        let mut pytest = self.command(group, UNLIMITED);
        // One that fails does not end the others here.
        pytest
            .arg("--maxfail=100000")
            .env("PLANTED_REACHED", &record);
        self.run(
            pytest,
            &format!("measure-{group}"),
            Duration::from_secs(1200),
        )?;
        let mut at_import = BTreeSet::new();
        let mut reached = BTreeSet::new();
        let mut tests = Vec::new();
        let text = fs::read_to_string(&record).context("the switches recorded nothing")?;
        for line in text.lines() {
            let (sign, words) = line.split_once(' ').unwrap_or((line, ""));
            match sign {
                "R" => drop(reached.insert(words.parse()?)),
                "T" if at_import.is_empty() => at_import = std::mem::take(&mut reached),
                "T" => reached.clear(),
                "D" => {
                    let mut words = words.splitn(3, ' ');
                    let seconds = words.next().context("seconds")?.parse()?;
                    let outcome = words.next().context("an outcome")?;
                    let name = words.next().context("a name")?.to_owned();
                    if outcome == "failed" {
                        println!("mutants: without a bug {name} fails, so it judges nothing");
                    }
                    if outcome == "passed" {
                        tests.push(Test {
                            name,
                            group,
                            seconds,
                            reached: std::mem::take(&mut reached),
                        });
                    }
                }
                _ => {}
            }
        }
        for test in &mut tests {
            test.reached.extend(&at_import);
        }
        Ok(tests)
    }

    fn measure_program(&self, group: usize) -> Result<Vec<Test>> {
        let mut list = self.command(group, UNLIMITED);
        let output = list.args(["--list", "--format", "terse"]).output()?;
        let names = String::from_utf8(output.stdout)?;
        let mut tests = Vec::new();
        for name in names.lines().filter_map(|line| line.strip_suffix(": test")) {
            let record = self.scratch.join(format!("reached-{group}"));
            let _ = fs::remove_file(&record);
            let mut test = self.command(group, UNLIMITED);
            test.args(["--exact", name]).env("PLANTED_REACHED", &record);
            let clock = Instant::now();
            match self.run(test, &format!("measure-{group}"), Duration::from_secs(600))? {
                End::Failed(_) => {
                    println!("mutants: without a bug {name} fails, so it judges nothing")
                }
                End::Passed => {
                    let text = fs::read_to_string(&record).unwrap_or_default();
                    let places = text
                        .lines()
                        .filter_map(|line| line.strip_prefix("R ")?.parse().ok());
                    let seconds = clock.elapsed().as_secs_f64();
                    tests.push(Test {
                        name: name.to_owned(),
                        group,
                        seconds,
                        reached: places.collect(),
                    });
                }
            }
        }
        Ok(tests)
    }

    /// Whether a process runs several tests.
    pub fn runs_files(&self) -> bool {
        matches!(self.runner, Runner::Pytest { .. })
    }

    /// Starts the tests of a group.
    fn command(&self, group: usize, processor_seconds: &str) -> Command {
        let (what, folder) = &self.groups[group];
        match &self.runner {
            Runner::Pytest { python, path } => {
                let mut pytest = limited(python, processor_seconds);
                pytest.args([
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-rfE",
                    "--tb=no",
                    "-p",
                    "no:cacheprovider",
                ]);
                pytest
                    .args(["-p", "planted_tests", "--rootdir"])
                    .arg(folder)
                    .arg(what);
                pytest.env("PYTHONPATH", path).current_dir(folder);
                pytest
            }
            Runner::Programs => {
                let mut program = limited(what, processor_seconds);
                program
                    .current_dir(folder)
                    .env("CARGO_MANIFEST_DIR", folder);
                program
            }
        }
    }

    /// Whether one of these tests notices the bug with this number; `worker` is which of those that run beside each other.
    pub fn notices(&self, number: usize, tests: &[&Test], worker: usize) -> Result<Option<String>> {
        // The quick ones first: most bugs are noticed by nearly any test that reaches them.
        let (mut begin, mut most) = (0, 2.0);
        while begin < tests.len() {
            let (mut end, mut seconds) = (begin, 0.0);
            while end < tests.len() && (end == begin || seconds + tests[end].seconds <= most) {
                seconds += tests[end].seconds;
                end += 1;
            }
            if let Some(by) = self.batch(number, &tests[begin..end], seconds, worker)? {
                return Ok(Some(by));
            }
            (begin, most) = (end, most * 8.0);
        }
        Ok(None)
    }

    fn batch(
        &self,
        number: usize,
        tests: &[&Test],
        seconds: f64,
        worker: usize,
    ) -> Result<Option<String>> {
        let mut groups: Vec<usize> = Vec::new();
        for test in tests {
            if !groups.contains(&test.group) {
                groups.push(test.group);
            }
        }
        let limit = Duration::from_secs_f64(40.0 + 10.0 * seconds);
        let processor_seconds = format!("{:.0}", 5.0 + 4.0 * seconds);
        let log = format!("worker-{worker}");
        // One process for all files; programs can only run one after another.
        let processes: Vec<Vec<usize>> = match self.runner {
            Runner::Pytest { .. } => vec![groups],
            Runner::Programs => groups.into_iter().map(|group| vec![group]).collect(),
        };
        for groups in processes {
            let mut command = self.command(groups[0], &processor_seconds);
            let names: Vec<_> = tests
                .iter()
                .filter(|test| groups.contains(&test.group))
                .collect();
            if let Runner::Pytest { .. } = self.runner {
                command.args(groups[1..].iter().map(|&group| &self.groups[group].0));
                let chosen = self.scratch.join(format!("chosen-{worker}"));
                let lines: Vec<_> = names.iter().map(|test| &*test.name).collect();
                fs::write(&chosen, lines.join("\n"))?;
                command.env("PLANTED_TESTS", chosen);
            } else {
                command
                    .arg("--exact")
                    .args(names.iter().map(|test| &test.name));
            }
            command.env("PLANTED", number.to_string());
            if let End::Failed(by) = self.run(command, &log, limit)? {
                return Ok(Some(by));
            }
        }
        Ok(None)
    }

    /// Runs a process of tests, and ends it and all that it started when it takes too long.
    fn run(&self, mut command: Command, log: &str, limit: Duration) -> Result<End> {
        let path = self.scratch.join(log);
        let file = fs::File::create(&path)?;
        command
            .stdin(Stdio::null())
            .stderr(file.try_clone()?)
            .stdout(file);
        let mut child = command
            .process_group(0)
            .spawn()
            .context("cannot start the tests")?;
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if Instant::now() > end {
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        // The process group is our own child's; whatever is left of it ends.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let Some(status) = status else {
            child.wait()?;
            return Ok(End::Failed("too long".to_owned()));
        };
        // 5: pytest had no test to run.
        ensure!(status.code() != Some(5), "pytest found none of the tests");
        if status.success() {
            return Ok(End::Passed);
        }
        Ok(End::Failed(
            failed(&path).unwrap_or_else(|| format!("ended: {status}")),
        ))
    }
}

/// A command that a signal ends after so many seconds of processor time. A loop without an end is found by that, also on a busy machine.
fn limited(program: &Path, processor_seconds: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -t \"$0\"; exec \"$@\"", processor_seconds]);
    shell.arg(program);
    shell
}

/// The test that failed, as pytest or a test program names it.
fn failed(log: &Path) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().find_map(|line| {
        let python = line
            .strip_prefix("FAILED ")
            .or_else(|| line.strip_prefix("ERROR "));
        let rust = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
        let name = python
            .map(|name| name.split(" - ").next().unwrap_or(name))
            .or_else(rust)?;
        Some(name.to_owned())
    })
}

/// Does something for each, on so many threads.
pub fn in_parallel<T: Send>(
    jobs: usize,
    work: Vec<T>,
    act: impl Fn(usize, T) -> Result<()> + Sync,
) -> Result<()> {
    let work = Mutex::new(work.into_iter());
    let worker = |worker| {
        let next = || work.lock().expect("no panic").next();
        while let Some(one) = next() {
            act(worker, one)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|number| scope.spawn(move || worker(number)))
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no panic"))
    })
}

/// The tests that reach a place, then others in the processes of these; the quick ones first.
pub fn who_reaches<'a>(
    tests: &'a [Test],
    by_place: &HashMap<usize, Vec<usize>>,
    place: usize,
    of_process: bool,
) -> Vec<&'a Test> {
    let by_seconds = |mut tests: Vec<&'a Test>| {
        tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        tests
    };
    let Some(direct) = by_place.get(&place) else {
        return Vec::new();
    };
    let mut chosen = by_seconds(direct.iter().map(|&test| &tests[test]).collect());
    if of_process {
        // What is done once in a process is reached by the first test that needs it, and concerns the others as well.
        let groups: BTreeSet<_> = chosen.iter().map(|test| test.group).collect();
        let others = tests
            .iter()
            .filter(|test| groups.contains(&test.group) && !test.reached.contains(&place));
        chosen.extend(by_seconds(others.collect()));
    }
    chosen
}
