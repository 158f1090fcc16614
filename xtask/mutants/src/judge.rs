//! Finds the tests, the places that each reaches, and whether one of them notices a bug.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::server::{Request, Server};
use crate::watch::{Watch, end_group};

/// A test, with the results of a run without a bug.
#[derive(Clone, Debug)]
pub struct Test {
    pub name: String,
    /// The file or program with the test, which runs as one process.
    pub group: usize,
    pub seconds: f64,
    /// The places that it reaches.
    pub reached: BTreeSet<usize>,
}

/// The results of all tests without a bug.
#[derive(Default)]
pub struct Measured {
    pub tests: Vec<Test>,
    /// The places that are reached before the first test begins. A bug there needs processes that start with it.
    pub at_import: BTreeSet<usize>,
}

/// How tests are run.
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
    /// The folder for output of the tests.
    pub scratch: PathBuf,
    pub jobs: usize,
    /// For each worker, the process that forks for each bug.
    pub servers: Mutex<HashMap<usize, Server>>,
}

/// No limit of processor time.
const UNLIMITED: &str = "unlimited";

/// How a process of tests ended.
enum End {
    Passed,
    /// A test failed, or the process crashed or hung.
    Failed(String),
}

impl Judge {
    /// Runs every test without a bug. A test that fails then is not used.
    pub fn measure(&self) -> Result<Measured> {
        let mut measured = match &self.runner {
            Runner::Pytest { .. } => self.measure_files()?,
            Runner::Programs => self.measure_programs()?,
        };
        ensure!(!measured.tests.is_empty(), "no test passes without a bug");
        measured
            .tests
            .sort_by(|a, b| (a.group, &a.name).cmp(&(b.group, &b.name)));
        Ok(measured)
    }

    fn measure_programs(&self) -> Result<Measured> {
        let found = Mutex::new(Vec::new());
        in_parallel(self.jobs, (0..self.groups.len()).collect(), |_, group| {
            let tests = self.measure_program(group)?;
            found.lock().expect("no panic").extend(tests);
            Ok(())
        })?;
        Ok(Measured {
            tests: found.into_inner().expect("no panic"),
            at_import: BTreeSet::new(),
        })
    }

    fn measure_files(&self) -> Result<Measured> {
        let record = |worker| self.scratch.join(format!("reached-{worker}"));
        for worker in 0..self.jobs {
            let _ = fs::remove_file(record(worker));
        }
        in_parallel(
            self.jobs,
            (0..self.groups.len()).collect(),
            |worker, group| {
                let file = self.groups[group].0.to_string_lossy();
                let request = Request {
                    number: 0,
                    processor_seconds: 0,
                    file: &file,
                    tests: &[],
                    log: self.scratch.join(format!("measure-{group}")),
                };
                self.in_server(
                    request,
                    worker,
                    Some(record(worker)),
                    Duration::from_secs(1200),
                )?;
                Ok(())
            },
        )?;
        // The servers that record are stopped; later ones run with bugs.
        self.servers.lock().expect("no panic").clear();
        let mut measured = Measured::default();
        for worker in 0..self.jobs {
            let text = fs::read_to_string(record(worker)).unwrap_or_default();
            self.read_record(&text, &mut measured)?;
        }
        for test in &mut measured.tests {
            test.reached.extend(&measured.at_import);
        }
        Ok(measured)
    }

    /// Reads the record of the plugin and the switches.
    fn read_record(&self, text: &str, measured: &mut Measured) -> Result<()> {
        let mut reached = BTreeSet::new();
        let mut is_at_import = true;
        for line in text.lines() {
            let (sign, words) = line.split_once(' ').unwrap_or((line, ""));
            match sign {
                "R" if is_at_import => drop(measured.at_import.insert(words.parse()?)),
                "R" => drop(reached.insert(words.parse()?)),
                "T" => {
                    is_at_import = false;
                    reached.clear();
                }
                "D" => {
                    let mut words = words.splitn(3, ' ');
                    let seconds = words.next().context("seconds")?.parse()?;
                    let outcome = words.next().context("an outcome")?;
                    let name = words.next().context("a name")?.to_owned();
                    if outcome == "failed" {
                        println!("mutants: without a bug {name} fails, so it judges nothing");
                    }
                    if outcome == "passed" {
                        let file = name.split("::").next().unwrap_or_default();
                        let is_of = |group: &(PathBuf, PathBuf)| group.0.ends_with(file);
                        let group = self.groups.iter().position(is_of);
                        measured.tests.push(Test {
                            group: group.context("a test of an unknown file")?,
                            name,
                            seconds,
                            reached: std::mem::take(&mut reached),
                        });
                    }
                }
                _ => {}
            }
        }
        Ok(())
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

    /// A command that runs the tests of a group.
    fn command(&self, group: usize, processor_seconds: &str) -> Command {
        let (what, folder) = &self.groups[group];
        match &self.runner {
            Runner::Pytest { python, path } => {
                let mut pytest = limited(python, processor_seconds);
                pytest.args(
                    "-m pytest -x -q -rfE --tb=no -p no:cacheprovider -p planted_tests".split(' '),
                );
                pytest.arg("--rootdir").arg(folder).arg(what);
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

    /// Starts a process that collects all tests. With `record`, its children record there which places they reach.
    fn start_server(&self, worker: usize, record: Option<&Path>) -> Result<Server> {
        let mut command = self.command(0, UNLIMITED);
        command.args(self.groups[1..].iter().map(|group| &group.0));
        command.args(["-s", "-o", "faulthandler_timeout=0"]);
        if let Some(record) = record {
            // A test that fails does not end the others of its file.
            command
                .arg("--maxfail=100000")
                .env("PLANTED_REACHED", record);
        }
        Server::start(command, &self.scratch.join(format!("server-{worker}")))
    }

    /// Runs tests in a child of the server of this worker, which is started if there is none.
    fn in_server(
        &self,
        request: Request<'_>,
        worker: usize,
        record: Option<PathBuf>,
        limit: Duration,
    ) -> Result<End> {
        let server = self.servers.lock().expect("no panic").remove(&worker);
        let mut server = match server {
            Some(server) => server,
            None => self.start_server(worker, record.as_deref())?,
        };
        let status = server.run(&request, limit)?;
        self.servers
            .lock()
            .expect("no panic")
            .insert(worker, server);
        ensure!(status != Some(5), "pytest found none of the tests");
        Ok(match status {
            None => End::Failed("too long".to_owned()),
            Some(0) => End::Passed,
            Some(status) => End::Failed(
                failed(&request.log).unwrap_or_else(|| format!("ended: status {status}")),
            ),
        })
    }

    /// Whether one of these tests notices the bug with this number; `worker` is the number of the concurrent job.
    ///
    /// `from_start`: the bug is active when the process starts, not only in a fork of one without it.
    pub fn notices(
        &self,
        number: usize,
        tests: &[&Test],
        from_start: bool,
        worker: usize,
    ) -> Result<Option<String>> {
        // The fast ones first, because most bugs are noticed by nearly any test that reaches them.
        let (mut begin, mut most) = (0, 0.5);
        while begin < tests.len() {
            let (mut end, mut seconds) = (begin, 0.0);
            while end < tests.len() && (end == begin || seconds + tests[end].seconds <= most) {
                seconds += tests[end].seconds;
                end += 1;
            }
            if let Some(by) = self.batch(number, &tests[begin..end], seconds, from_start, worker)? {
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
        from_start: bool,
        worker: usize,
    ) -> Result<Option<String>> {
        let mut groups: Vec<usize> = Vec::new();
        for test in tests {
            if !groups.contains(&test.group) {
                groups.push(test.group);
            }
        }
        let limit = Duration::from_secs_f64(300.0 + 40.0 * seconds);
        let processor_seconds = (3.0 + 4.0 * seconds).round();
        let log = format!("worker-{worker}");
        if matches!(self.runner, Runner::Pytest { .. }) && !from_start {
            let names: Vec<_> = tests.iter().map(|test| &*test.name).collect();
            let request = Request {
                number,
                processor_seconds: processor_seconds as u64,
                file: "",
                tests: &names,
                log: self.scratch.join(log),
            };
            return Ok(match self.in_server(request, worker, None, limit)? {
                End::Passed => None,
                End::Failed(by) => Some(by),
            });
        }
        let start = match self.runner {
            Runner::Pytest { .. } => COLLECTION,
            Runner::Programs => 0.0,
        };
        let processor_seconds = (processor_seconds + start).to_string();
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

    /// Runs a process of tests, and kills it with all its descendants if it takes too long or is idle.
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
        let mut watch = Watch::new(child.id(), limit);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            std::thread::sleep(watch.pause());
            if watch.is_over() {
                break None;
            }
        };
        // The process group belongs to our own child; its remaining processes are killed.
        end_group(child.id());
        let Some(status) = status else {
            child.wait()?;
            return Ok(End::Failed("too long".to_owned()));
        };
        // Status 5: pytest had no test to run.
        ensure!(status.code() != Some(5), "pytest found none of the tests");
        if status.success() {
            return Ok(End::Passed);
        }
        Ok(End::Failed(
            failed(&path).unwrap_or_else(|| format!("ended: {status}")),
        ))
    }
}

/// A command that a signal ends after this many seconds of CPU time, so that an endless loop is found also on a busy machine.
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

/// Calls `body` for each item, on this many threads.
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

/// The processor time in seconds in which a process of pytest collects all tests, on a busy machine.
const COLLECTION: f64 = 30.0;

/// The time in seconds for tests that do not reach a bug themselves.
const OTHERS: f64 = 10.0;

/// The tests that reach a place, then other tests of their processes; the fast ones first.
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
        // Code that runs once in a process is reached by the first test that needs it, and affects the others, too.
        let groups: BTreeSet<_> = chosen.iter().map(|test| test.group).collect();
        let others = tests
            .iter()
            .filter(|test| groups.contains(&test.group) && !test.reached.contains(&place));
        let mut seconds = 0.0;
        chosen.extend(by_seconds(others.collect()).into_iter().take_while(|test| {
            seconds += test.seconds;
            seconds < OTHERS
        }));
    }
    chosen
}
