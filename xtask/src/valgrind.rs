//! `valgrind`: the test binaries of core under valgrind.

use std::path::Path;

use crate::args::Args;
use crate::step::{
    Outcome, Step, StepResult, cargo, output, program, root, run, run_all, succeeds,
};

pub(crate) const HELP: &str = "
Builds the tests of dlpack-core and runs each test binary under valgrind; a wrong access or a lost block fails it.
Skips, saying so, where valgrind is missing.

usage: cargo xtask valgrind [--cases N] [filter]
  --cases N   cases per property test (default 500; valgrind makes each some fifty times slower)
  filter      only tests whose name contains it
";

pub(crate) fn main(mut args: Args) -> Result<(), String> {
    let cases = args.value("--cases")?.unwrap_or_else(|| "500".into());
    let filter = args.word();
    args.finish()?;

    if !succeeds(program("valgrind", &["--version"])) {
        let reason =
            "valgrind is missing; `apt-get install valgrind` installs it on Debian and Ubuntu";
        let step = Step::new("valgrind", move || Ok(Outcome::Skipped(reason.into())));
        return run_all("valgrind", vec![step], false);
    }

    println!("building the tests of dlpack-core");
    let messages = output(cargo(&[
        "test",
        "-p",
        "dlpack-core",
        "--all-features",
        "--lib",
        "--tests",
        "--no-run",
        "--message-format=json",
    ]))?;
    let binaries = executables(&messages);
    if binaries.is_empty() {
        return Err("cargo built no test binary".into());
    }
    let steps = binaries
        .into_iter()
        .map(|binary| {
            let name = Path::new(&binary)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let (cases, filter) = (cases.clone(), filter.clone());
            Step::new(name, move || {
                under_valgrind(&binary, &cases, filter.as_deref())
            })
        })
        .collect();
    run_all("valgrind", steps, true)
}

fn under_valgrind(binary: &str, cases: &str, filter: Option<&str>) -> StepResult {
    let mut command = program(
        "valgrind",
        &[
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ],
    );
    // Cargo runs tests in their package; some read their data from there.
    command.current_dir(root().join("dlpack-core"));
    command
        .arg(binary)
        .arg("--test-threads=1")
        .args(filter)
        .env("DLPACK_CASES", cases);
    run(command)
}

/// The paths of the test binaries in cargo's messages, one JSON object per line.
fn executables(messages: &str) -> Vec<String> {
    messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\""))
        .filter_map(|line| {
            let (_, rest) = line.split_once("\"executable\":\"")?;
            let (path, _) = rest.split_once('"')?;
            Some(path.replace("\\\\", "\\"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::executables;

    #[test]
    fn binaries_are_found_in_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"syn"},"executable":null,"fresh":true}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"abi"},"executable":"/t/deps/abi-1","fresh":true}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executables(messages), ["/t/deps/abi-1"]);
    }
}
