//! Steps with a name, a time limit and an outcome.

use core::time::Duration;
use std::time::Instant;

use crate::prelude::*;
use crate::watchdog::Watchdog;

/// The time limit of a step in minutes, unless the variable `DLPACK_STEP_MINUTES` sets another. The slowest step builds a clean
/// clone: it takes minutes on an idle machine of two cores, and several times that on a busy one.
const MINUTES: u64 = 60;

/// For the limits of steps that take longer.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The reason why a step was not run: not a failure, but reported at the end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Skipped(String);

/// Ends a step that this machine cannot run.
pub(crate) fn skip<T>(reason: impl Into<String>) -> Result<T> {
    Err(Skipped(reason.into()).into())
}

/// Fails if there are errors.
pub(crate) fn none(errors: Vec<String>) -> Result<()> {
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    Ok(())
}

pub(crate) trait Line<'a> {
    /// Starts a command, or adds arguments; no argument contains a space.
    fn line(self, words: &str) -> Cmd<'a>;
}

impl<'a> Line<'a> for Cmd<'a> {
    fn line(self, words: &str) -> Cmd<'a> {
        self.args(words.split_whitespace())
    }
}

impl<'a> Line<'a> for &'a Shell {
    fn line(self, words: &str) -> Cmd<'a> {
        let (program, words) = words.split_once(' ').expect("a program and its words");
        self.cmd(program).line(words)
    }
}

type Action = dyn FnOnce(&Shell) -> Result<()>;

/// A step with its displayed name.
pub(crate) struct Step {
    pub(crate) name: String,
    action: Box<Action>,
    limit: Option<Duration>,
}

impl Step {
    pub(crate) fn new(
        name: impl Into<String>,
        action: impl FnOnce(&Shell) -> Result<()> + 'static,
    ) -> Self {
        let (name, action) = (name.into(), Box::new(action));
        let limit = None;
        Self {
            name,
            action,
            limit,
        }
    }

    /// Sets the time limit of the step.
    pub(crate) fn limit(self, limit: Duration) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }

    /// A step that is one command, written as `name: command`.
    pub(crate) fn line(line: impl Into<String>) -> Self {
        let line = line.into();
        let (name, words) = line.split_once(": ").expect("a name and a command");
        let words = words.to_owned();
        Self::new(name, move |sh| Ok(sh.line(&words).run()?))
    }

    /// Runs the step alone.
    pub(crate) fn alone(self, sh: &Shell, title: &str) -> Result<()> {
        run_all(sh, title, vec![self], false)
    }
}

/// Runs the steps in order and prints how each ended. Stops at the first failure, unless `keep_going` is set. A step that exceeds
/// its time limit fails, and the processes that it started are killed.
pub(crate) fn run_all(sh: &Shell, title: &str, steps: Vec<Step>, keep_going: bool) -> Result<()> {
    let usual_limit = usual_limit()?;
    let (started, total) = (Instant::now(), steps.len());
    let (mut passed, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
    for (number, step) in (1..).zip(steps) {
        let (name, limit) = (step.name, step.limit.unwrap_or(usual_limit));
        println!("\n=== [{number}/{total}] {name}");
        let clock = Instant::now();
        let watchdog = Watchdog::start(format!("[{number}/{total}] {name}"), limit);
        let mut outcome = (step.action)(sh);
        if watchdog.stop() {
            let exceeded = format!("it exceeded its time limit of {limit:.0?}");
            // Not the error itself: a step whose process was killed may have returned that as a reason to skip.
            outcome = Err(match outcome {
                Ok(()) => anyhow::anyhow!("{exceeded}"),
                Err(error) => anyhow::anyhow!("{exceeded}: {error:#}"),
            });
        }
        let (shown, elapsed) = (format!("--- [{number}/{total}] {name}:"), clock.elapsed());
        match outcome {
            Ok(()) => {
                println!("{shown} passed in {elapsed:.1?}");
                passed += 1;
            }
            Err(error) if error.is::<Skipped>() => {
                println!("{shown} SKIPPED, {error}");
                skipped.push(format!("SKIPPED {name}: {error}"));
            }
            Err(error) => {
                println!("{shown} FAILED after {elapsed:.1?}\n{error:#}");
                failed.push(name);
            }
        }
        if !failed.is_empty() && !keep_going {
            break;
        }
    }
    println!("\n{}", skipped.join("\n"));
    let (skipped, wrong, names) = (skipped.len(), failed.len(), failed.join("; "));
    let rest = total - passed - skipped - wrong;
    let counts = format!("{passed} passed, {skipped} skipped, {rest} not run");
    let summary = format!("{counts} in {:.0?}", started.elapsed());
    ensure!(wrong == 0, "{wrong} FAILED ({names}), {summary}");
    println!("xtask {title}: {summary}");
    Ok(())
}

/// The time limit of a step that has none of its own.
fn usual_limit() -> Result<Duration> {
    let minutes = match std::env::var("DLPACK_STEP_MINUTES") {
        Ok(minutes) => minutes
            .parse()
            .context("DLPACK_STEP_MINUTES is no number")?,
        Err(_) => MINUTES,
    };
    Ok(Duration::from_secs(minutes.saturating_mul(60)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step that `hang_if_asked` runs, and for how many seconds. `a_step_that_hangs_is_reported` starts it as a separate
    /// process, because a watchdog kills all processes below its own.
    const HANGING: &str = "DLPACK_HANGING_STEP";

    #[test]
    fn hang_if_asked() {
        let Ok(asked) = std::env::var(HANGING) else {
            return;
        };
        let (what, limit) = asked.split_once(' ').unwrap();
        let limit = Duration::from_secs(limit.parse().unwrap());
        // Looked up before the step begins, because a shim of pyenv takes a while.
        let python = interpreter().unwrap_or_default();
        let action: Box<Action> = match what {
            "child" => Box::new(|sh| Ok(sh.line("sleep 1000").run()?)),
            "grandchild" => Box::new(|sh| Ok(cmd!(sh, "sh -c 'sleep 1000; true'").run()?)),
            "python" => Box::new(move |sh| {
                let python = sh.cmd(python).args(["-X", "faulthandler", "-c"]);
                let code = "import time\ndef sleeps(): time.sleep(1000)\nsleeps()";
                Ok(python.arg(code).run()?)
            }),
            "skipping" => Box::new(|sh| match sh.line("sleep 1000").run() {
                Ok(()) => Ok(()),
                Err(_) => skip("the process failed"),
            }),
            _ => Box::new(|_| {
                std::thread::sleep(Duration::from_secs(1000));
                Ok(())
            }),
        };
        let step = Step::new("stuck", action).limit(limit);
        let next = Step::line("next: cargo --version");
        let outcome = run_all(&Shell::new().unwrap(), "test", vec![step, next], true);
        println!("outcome: {:#}", outcome.unwrap_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_step_that_hangs_is_reported() {
        let run = |what, limit| {
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            test.args(["--exact", "step::tests::hang_if_asked", "--nocapture"]);
            let output = test.env(HANGING, format!("{what} {limit}")).output();
            let output = output.unwrap();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            (output.status.code(), text)
        };
        // On a busy machine a process may not have made progress after a second.
        let until = |what, shown| {
            let limits = [1, 8, 60].into_iter();
            let mut runs = limits.map(|limit| run(what, limit));
            let (status, text) = runs.find(|(_, text)| text.contains(shown)).unwrap();
            assert!(text.contains("[1/2] stuck: HANGS"), "{text}");
            (status, text)
        };
        let mut cases = vec![
            ("child", "sleep 1000"),
            ("grandchild", "sh -c sleep 1000"),
            ("skipping", "sleep 1000"),
        ];
        cases.extend(interpreter().is_ok().then_some(("python", "in sleeps")));
        for (what, shown) in cases {
            let (status, text) = until(what, shown);
            assert_eq!(status, Some(0), "{text}");
            let failed = "outcome: 1 FAILED (stuck), 1 passed, 0 skipped, 0 not run";
            assert!(text.contains(failed), "{text}");
            assert!(text.contains("exceeded its time limit"), "{text}");
        }
        let (status, text) = until("itself", "does not return");
        assert_eq!(status, Some(1), "{text}");
    }

    #[test]
    fn the_first_failure_stops_the_rest_unless_told_otherwise() {
        for (keep_going, passed) in [(false, 1), (true, 2)] {
            let steps = vec![
                Step::line("one: cargo --version"),
                Step::new("two", |_| skip("not here")),
                Step::line("three: cargo no-such-command"),
                Step::line("four: cargo --version"),
            ];
            let outcome = run_all(&Shell::new().unwrap(), "test", steps, keep_going);
            let error = outcome.unwrap_err().to_string();
            let counts = format!("{passed} passed, 1 skipped, {} not run", 2 - passed);
            assert!(error.starts_with(&format!("1 FAILED (three), {counts}")));
        }
    }
}
