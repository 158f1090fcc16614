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

type Action = dyn FnOnce(&Shell) -> Result<()>;

/// One thing to do, with the name it has on the screen.
pub(crate) struct Step {
    pub(crate) name: String,
    action: Box<Action>,
}

impl Step {
    pub(crate) fn new(name: impl Into<String>, action: impl FnOnce(&Shell) -> Result<()> + 'static) -> Self {
        Self { name: name.into(), action: Box::new(action) }
    }

    /// A step that is one command, without spaces in its words.
    pub(crate) fn command(name: impl Into<String>, line: impl Into<String>) -> Self {
        let line = line.into();
        Self::new(name, move |sh| {
            let mut words = line.split(' ');
            Ok(sh.cmd(words.next().unwrap_or_default()).args(words).run()?)
        })
    }
}

/// Runs the steps in order and says how each ended; stops at the first failure unless told to go on.
pub(crate) fn run_all(sh: &Shell, title: &str, steps: Vec<Step>, keep_going: bool) -> Result<()> {
    let started = Instant::now();
    let total = steps.len();
    let (mut passed, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
    for (index, Step { name, action }) in steps.into_iter().enumerate() {
        let number = index + 1;
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
                if !keep_going {
                    break;
                }
            }
        }
    }

    println!();
    skipped.iter().for_each(|line| println!("{line}"));
    let mut summary = format!("{passed} {} passed", if passed == 1 { "step" } else { "steps" });
    let not_run = total - passed - skipped.len() - failed.len();
    for (count, what) in [(skipped.len(), "skipped"), (not_run, "not run")] {
        if count > 0 {
            summary += &format!(", {count} {what}");
        }
    }
    summary += &format!(" in {:.0?}", started.elapsed());
    ensure!(failed.is_empty(), "{} FAILED ({}), {summary}", failed.len(), failed.join("; "));
    println!("xtask {title}: {summary}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stops_the_rest_unless_told_otherwise() {
        let message = |keep_going| {
            let steps = vec![
                Step::new("one", |_| Ok(())),
                Step::new("two", |_| skip("not here")),
                Step::new("three", |_| bail!("on purpose")),
                Step::new("four", |_| Ok(())),
            ];
            run_all(&Shell::new().unwrap(), "test", steps, keep_going).unwrap_err().to_string()
        };
        assert!(message(false).starts_with("1 FAILED (three), 1 step passed, 1 skipped, 1 not run in"));
        assert!(message(true).starts_with("1 FAILED (three), 2 steps passed, 1 skipped in"));
    }
}
