//! The workspace's own commands, run as `cargo xtask <command>`.

mod api;
mod asan;
mod bench;
mod ci;
mod consumers;
mod coverage;
mod debian;
mod demo;
mod drivers;
mod floors;
mod fuzz;
mod gpu;
mod place;
mod pytests;
mod python;
mod step;
mod test;
mod text;
mod valgrind;

use std::process::ExitCode;

use crate::prelude::*;

/// What nearly every file needs.
mod prelude {
    pub(crate) use crate::{finish, place::*, python::*, step::*};
    pub(crate) use anyhow::{Context as _, Result, bail, ensure};
    pub(crate) use pico_args::Arguments;
    pub(crate) use std::path::{Path, PathBuf};
    pub(crate) use xshell::{Cmd, Shell, cmd};
}

/// What a subcommand does with the words after its name.
type Action = fn(&Shell, Arguments) -> Result<()>;

/// Each subcommand: what it is called, the file whose head is its help, what it does.
const COMMANDS: [(&str, &str, Action); 13] = [
    ("demo", include_str!("demo.rs"), demo::main),
    ("test", include_str!("test.rs"), test::main),
    ("ci", include_str!("ci.rs"), ci::main),
    ("coverage", include_str!("coverage.rs"), |sh, args| finish(args).and_then(|()| coverage::check(sh))),
    ("api", include_str!("api.rs"), api::main),
    ("consumers", include_str!("consumers.rs"), consumers::main),
    ("gpu", include_str!("gpu.rs"), gpu::main),
    ("pytest", include_str!("pytests.rs"), pytests::main),
    ("faults", include_str!("pytests/faults.rs"), pytests::faults::main),
    ("asan", include_str!("asan.rs"), asan::main),
    ("valgrind", include_str!("valgrind.rs"), valgrind::main),
    ("fuzz", include_str!("fuzz.rs"), fuzz::main),
    ("bench", include_str!("bench.rs"), bench::main),
];

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args().skip(1).collect();
    let asks_for_help = |word: &String| word == "--help" || word == "-h";
    let asked = words.iter().any(asks_for_help) || words.first().is_some_and(|word| word == "help");
    words.retain(|word| !asks_for_help(word));
    let mut words = words.into_iter().skip_while(|word| asked && word == "help");
    let Some(name) = words.next() else {
        println!("usage: cargo xtask <command> [options]\n\ncommands:");
        for (name, file, _) in COMMANDS {
            println!("  {name:<10}{}", help(file).next().unwrap_or_default());
        }
        println!("\n`cargo xtask <command> --help` says more about one of them.");
        return ExitCode::SUCCESS;
    };
    let Some((_, file, action)) = COMMANDS.iter().find(|command| command.0 == name) else {
        eprintln!("xtask: unknown command `{name}`; `cargo xtask --help` lists the commands");
        return ExitCode::from(2);
    };
    if asked {
        help(file).for_each(|line| println!("{line}"));
        return ExitCode::SUCCESS;
    }
    let args = Arguments::from_vec(words.map(Into::into).collect());
    if let Err(error) = shell().and_then(|sh| action(&sh, args)) {
        eprintln!("xtask {name}: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What the head of a file says.
fn help(file: &str) -> impl Iterator<Item = &str> {
    let head = file.lines().map_while(|line| line.strip_prefix("//!"));
    head.map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// Refuses whatever nobody asked for.
fn finish(args: Arguments) -> Result<()> {
    let left = args.finish();
    ensure!(left.is_empty(), "unexpected argument {:?}; try `--help`", left[0]);
    Ok(())
}
