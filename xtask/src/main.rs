//! The workspace's own commands, run as `cargo xtask <command>`.

mod args;
mod asan;
mod bench;
mod ci;
mod consumers;
mod coverage;
mod debian;
mod demo;
mod drivers;
mod fuzz;
mod gpu;
mod packages;
mod pyo3_versions;
mod pytests;
mod python;
mod readme;
mod source;
mod step;
mod test;
mod tree;
mod unsafe_files;
mod valgrind;
mod words;

use std::process::ExitCode;

use crate::args::Args;

/// One subcommand: what it is called, what it says of itself, what it does.
struct Command {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(Args) -> Result<(), String>,
}

const COMMANDS: [Command; 12] = [
    Command {
        name: "demo",
        summary: "run the demonstration: annotated structs, exported and read back",
        help: demo::HELP,
        run: demo::main,
    },
    Command {
        name: "test",
        summary: "run every test: unit, doc, ui, features, no_std, examples, coverage",
        help: test::HELP,
        run: test::main,
    },
    Command {
        name: "ci",
        summary: "what .ci/run runs: formatting, lints, docs, `test`, packaging, checks of the text",
        help: ci::HELP,
        run: ci::main,
    },
    Command {
        name: "coverage",
        summary: "check that every requirement has a test that names it, or a reason",
        help: coverage::HELP,
        run: coverage::main,
    },
    Command {
        name: "consumers",
        summary: "let every array library read every kind of tensor, and write the table",
        help: consumers::HELP,
        run: consumers::main,
    },
    Command {
        name: "gpu",
        summary: "check on a real GPU that work on streams is ordered, and write the table",
        help: gpu::HELP,
        run: gpu::main,
    },
    Command {
        name: "pytest",
        summary: "run the Python tests of dlpack-pyo3",
        help: pytests::HELP,
        run: pytests::main,
    },
    Command {
        name: "faults",
        summary: "run the Python tests where faults show: other Pythons, sanitizers, for long",
        help: pytests::FAULTS_HELP,
        run: pytests::faults,
    },
    Command {
        name: "asan",
        summary: "run the tests of core and derive under AddressSanitizer, leaks included",
        help: asan::HELP,
        run: asan::main,
    },
    Command {
        name: "valgrind",
        summary: "run the tests of core under valgrind, leaks included",
        help: valgrind::HELP,
        run: valgrind::main,
    },
    Command {
        name: "fuzz",
        summary: "run one fuzz target, or all of them in turn",
        help: fuzz::HELP,
        run: fuzz::main,
    },
    Command {
        name: "bench",
        summary: "run the benchmarks",
        help: bench::HELP,
        run: bench::main,
    },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "--help".into());
    let rest: Vec<String> = words.collect();

    if matches!(name.as_str(), "help" | "--help" | "-h") {
        return help(rest.first().map(String::as_str));
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: unknown command `{name}`; `cargo xtask --help` lists the commands");
        return ExitCode::from(2);
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        return help(Some(command.name));
    }
    match (command.run)(Args::new(rest)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn help(about: Option<&str>) -> ExitCode {
    if let Some(name) = about {
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            eprintln!("xtask: unknown command `{name}`; `cargo xtask --help` lists the commands");
            return ExitCode::from(2);
        };
        println!(
            "cargo xtask {}: {}\n\n{}",
            command.name,
            command.summary,
            command.help.trim()
        );
        return ExitCode::SUCCESS;
    }
    println!("usage: cargo xtask <command> [options]\n\ncommands:");
    for command in &COMMANDS {
        println!("  {:<10}{}", command.name, command.summary);
    }
    println!("\n`cargo xtask <command> --help` says more about one of them.");
    ExitCode::SUCCESS
}
