//! A process of pytest that forks for each bug.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::watch::{Watch, end_group};

/// A process of pytest that has collected all tests; see `planted_tests.py`.
pub struct Server {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tests for a server to run.
pub struct Request<'a> {
    pub number: usize,
    /// 0: no limit.
    pub processor_seconds: u64,
    /// All tests of this file, or if it is empty `tests`.
    pub file: &'a str,
    pub tests: &'a [&'a str],
    pub log: PathBuf,
}

impl Server {
    /// Starts the process: `pytest` with the plugin and all test files. Its errors go to `log`.
    pub fn start(mut pytest: Command, log: &Path) -> Result<Self> {
        pytest.env("PLANTED_SERVER", "1");
        pytest.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pytest
            .stderr(fs::File::create(log)?)
            .spawn()
            .context("cannot start pytest")?;
        let requests = child.stdin.take().context("a pipe")?;
        let output = child.stdout.take().context("a pipe")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    /// Runs tests in a child, and returns the status with which it ended, or `None` if it took too long.
    pub fn run(&mut self, request: &Request<'_>, limit: Duration) -> Result<Option<i32>> {
        let line = serde_json::json!({
            "number": request.number,
            "processor_seconds": request.processor_seconds,
            "file": request.file,
            "tests": request.tests,
            "log": request.log,
        });
        writeln!(self.requests, "{line}")?;
        let child = self.answers.recv().context("pytest collects no tests")?;
        let child: u32 = child.parse()?;
        let mut watch = Watch::new(child, limit);
        let mut is_late = false;
        let status = loop {
            match self.answers.recv_timeout(watch.pause()) {
                Ok(status) => break status,
                Err(RecvTimeoutError::Disconnected) => bail!("the server of the tests has ended"),
                Err(RecvTimeoutError::Timeout) if !is_late && watch.is_over() => {
                    is_late = true;
                    end_group(child);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        // Whatever the tests have started ends too.
        end_group(child);
        Ok((!is_late).then_some(status.parse()?))
    }
}
