//! Steps with a name, a clock and an outcome; and the commands they start.

use core::fmt::Write as _;
use core::time::Duration;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How a step ended when it did not fail.
pub(crate) enum Outcome {
    Passed,
    /// Nothing was checked; the reason is printed where nobody can miss it.
    Skipped(String),
}

pub(crate) type StepResult = Result<Outcome, String>;

/// One thing to do, with the name it has on the screen.
pub(crate) struct Step {
    name: String,
    action: Box<dyn FnOnce() -> StepResult>,
}

impl Step {
    pub(crate) fn new(
        name: impl Into<String>,
        action: impl FnOnce() -> StepResult + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            action: Box::new(action),
        }
    }

    /// A step that is one command.
    pub(crate) fn command(name: impl Into<String>, command: Command) -> Self {
        Self::new(name, move || run(command))
    }

    /// A step that checks something in this process.
    pub(crate) fn check(
        name: impl Into<String>,
        action: impl FnOnce() -> Result<(), String> + 'static,
    ) -> Self {
        Self::new(name, move || action().map(|()| Outcome::Passed))
    }
}

/// Runs the steps in order and says how each ended; stops at the first failure unless told to go on.
pub(crate) fn run_all(title: &str, steps: Vec<Step>, keep_going: bool) -> Result<(), String> {
    let started = Instant::now();
    let total = steps.len();
    let mut passed = 0;
    let mut skipped = Vec::new();
    let mut failed = Vec::new();

    for (index, Step { name, action }) in steps.into_iter().enumerate() {
        let number = index + 1;
        println!("\n=== [{number}/{total}] {name}");
        let clock = Instant::now();
        let outcome = action();
        let elapsed = human(clock.elapsed());
        match outcome {
            Ok(Outcome::Passed) => {
                println!("--- [{number}/{total}] {name}: passed in {elapsed}");
                passed += 1;
            }
            Ok(Outcome::Skipped(reason)) => {
                println!("--- [{number}/{total}] {name}: SKIPPED, {reason}");
                skipped.push(format!("SKIPPED {name}: {reason}"));
            }
            Err(message) => {
                println!("--- [{number}/{total}] {name}: FAILED after {elapsed}\n{message}");
                failed.push(name);
                if !keep_going {
                    break;
                }
            }
        }
    }

    println!();
    for line in &skipped {
        println!("{line}");
    }
    let elapsed = human(started.elapsed());
    let mut summary = format!("{passed} {} passed", plural(passed));
    if !skipped.is_empty() {
        let _ = write!(summary, ", {} skipped", skipped.len());
    }
    if failed.is_empty() {
        println!("xtask {title}: {summary} in {elapsed}");
        return Ok(());
    }
    let not_run = total - passed - skipped.len() - failed.len();
    if not_run > 0 {
        let _ = write!(summary, ", {not_run} not run");
    }
    Err(format!(
        "{} FAILED ({}), {summary} in {elapsed}",
        failed.len(),
        failed.join("; ")
    ))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "step" } else { "steps" }
}

/// A duration as people say it: `0.4 s`, `41 s`, `3 min 10 s`.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The workspace's root, wherever the command was started.
pub(crate) fn root() -> PathBuf {
    // `cargo run` sets it; a binary started by hand falls back on where it was built.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .expect("xtask lies inside the workspace")
        .to_owned()
}

/// The directory that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// `program` in the workspace's root, without standard input.
pub(crate) fn program(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).args(words).stdin(Stdio::null());
    command
}

/// The same cargo that runs us.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    program(&cargo, words)
}

/// Cargo of the nightly toolchain, which only rustup can choose.
pub(crate) fn nightly(words: &[&str]) -> Command {
    let mut command = program("cargo", &["+nightly"]);
    // Set by the `cargo run` we live in; they would hand the stable compiler to the nightly cargo.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command.args(words);
    command
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(mut command: Command) -> StepResult {
    let line = shown(&command);
    println!("$ {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(Outcome::Passed),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}` did not start: {error}")),
    }
}

/// Runs a command and gives what it wrote to standard output.
pub(crate) fn output(mut command: Command) -> Result<String, String> {
    let line = shown(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{line}` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` ended with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the command starts and succeeds; its output is of no interest.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(
                line,
                "{}={:?} ",
                name.to_string_lossy(),
                value.to_string_lossy()
            );
        }
    }
    let program = PathBuf::from(command.get_program());
    line.push_str(&program.file_name().unwrap_or_default().to_string_lossy());
    for word in command.get_args() {
        let _ = write!(line, " {}", word.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (millis, expected) in [
            (0, "0.0 s"),
            (420, "0.4 s"),
            (9_900, "9.9 s"),
            (41_700, "41 s"),
            (190_000, "3 min 10 s"),
            (3_600_000, "60 min 0 s"),
        ] {
            assert_eq!(human(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn the_first_failure_stops_the_rest_unless_told_otherwise() {
        fn three() -> Vec<Step> {
            vec![
                Step::check("one", || Ok(())),
                Step::check("two", || Err("on purpose".into())),
                Step::check("three", || Ok(())),
            ]
        }
        let message = run_all("test", three(), false).unwrap_err();
        assert!(
            message.starts_with("1 FAILED (two), 1 step passed, 1 not run in"),
            "{message}"
        );
        let message = run_all("test", three(), true).unwrap_err();
        assert!(
            message.starts_with("1 FAILED (two), 2 steps passed in"),
            "{message}"
        );
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = program("/usr/bin/cargo", &["doc", "--no-deps"]);
        command.env("RUSTDOCFLAGS", "-Dwarnings");
        assert_eq!(
            shown(&command),
            "RUSTDOCFLAGS=\"-Dwarnings\" cargo doc --no-deps"
        );
    }

    #[test]
    fn a_command_that_fails_is_an_error() {
        #[cfg(unix)]
        assert!(run(program("false", &[])).is_err());
        assert!(run(program("no-such-program-anywhere", &[])).is_err());
    }
}
