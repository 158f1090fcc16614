//! Steps with a name, a clock and an outcome.

use std::time::Instant;

use crate::prelude::*;

/// Why nothing was checked: nobody's mistake, but printed where nobody can miss it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Skipped(String);

/// Ends a step that this machine cannot do.
pub(crate) fn skip<T>(reason: impl Into<String>) -> Result<T> {
    Err(Skipped(reason.into()).into())
}

/// Fails if there are errors.
pub(crate) fn none(errors: Vec<String>) -> Result<()> {
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    Ok(())
}

pub(crate) trait Line<'a> {
    /// Begins a command, or adds to one; no word has a space in it.
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

/// One thing to do, with the name it has on the screen.
pub(crate) struct Step {
    pub(crate) name: String,
    action: Box<Action>,
}

impl Step {
    pub(crate) fn new(
        name: impl Into<String>,
        action: impl FnOnce(&Shell) -> Result<()> + 'static,
    ) -> Self {
        let (name, action) = (name.into(), Box::new(action));
        Self { name, action }
    }

    /// A step that is one command, written as `name: command`.
    pub(crate) fn line(line: impl Into<String>) -> Self {
        let line = line.into();
        let (name, words) = line.split_once(": ").expect("a name and a command");
        let words = words.to_owned();
        Self::new(name, move |sh| Ok(sh.line(&words).run()?))
    }

    /// Runs it as all there is to do.
    pub(crate) fn alone(self, sh: &Shell, title: &str) -> Result<()> {
        run_all(sh, title, vec![self], false)
    }
}

/// Runs the steps in order and says how each ended; stops at the first failure unless told to go on.
pub(crate) fn run_all(sh: &Shell, title: &str, steps: Vec<Step>, keep_going: bool) -> Result<()> {
    let (started, total) = (Instant::now(), steps.len());
    let (mut passed, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
    for (number, Step { name, action }) in (1..).zip(steps) {
        println!("\n=== [{number}/{total}] {name}");
        let clock = Instant::now();
        let outcome = action(sh);
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

#[cfg(test)]
mod tests {
    use super::*;

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
