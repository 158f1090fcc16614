//! The workspace's own commands, run as `cargo xtask <command>`.

mod api;
mod bench;
mod ci;
mod consumers;
mod coverage;
mod demo;
mod drivers;
mod faults;
mod floors;
mod gpu;
mod guide;
mod miri;
mod models;
mod mutants;
mod place;
mod prose;
mod pytest;
mod python;
mod release;
mod step;
mod test;
mod text;
mod watchdog;

use std::process::ExitCode;

use crate::prelude::*;

/// Imports that nearly every file needs.
mod prelude {
    pub(crate) use crate::{finish, place::*, python::*, step::*};
    pub(crate) use anyhow::{Context as _, Result, bail, ensure};
    pub(crate) use pico_args::Arguments;
    pub(crate) use std::path::{Path, PathBuf};
    pub(crate) use xshell::{Cmd, Shell, cmd};
}

type Action = fn(&Shell, Arguments) -> Result<()>;

macro_rules! commands {
    ($($name:ident)*) => {
        [$((stringify!($name), include_str!(concat!(stringify!($name), ".rs")), $name::main)),*]
    };
}

/// Each subcommand: its name, the file whose head is its help, and a function that gets its arguments.
const COMMANDS: [(&str, &str, Action); 14] = commands!(
    demo test ci guide coverage api consumers gpu pytest faults miri models mutants bench
);

macro_rules! scripts {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../.ci/", $name)))),*]
    };
}

/// Commands that are scripts in `.ci`, which get the arguments unchanged.
const SCRIPTS: [(&str, &str); 4] = scripts!("asan" "fuzz" "valgrind" "windows");

fn main() -> ExitCode {
    if let Err(error) = start() {
        eprintln!("xtask {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn start() -> Result<()> {
    let mut words: Vec<_> = std::env::args().skip(1).collect();
    let all = words.len();
    let is_help = |word: &str| ["help", "--help", "-h"].contains(&word);
    // Later words may be those of a filter, such as `-k help`.
    let mut at = 0..;
    words.retain(|word| !(at.next() < Some(2) && is_help(word)) && word != "--help");
    let Some(name) = words.first() else {
        println!("usage: cargo xtask <command> [options]; with --help it says more\n");
        for (name, file, _) in COMMANDS {
            println!("  {name:<10}{}", help(file).next().unwrap_or_default());
        }
        for (name, script) in SCRIPTS {
            println!("  {name:<10}{}", about(script).next().unwrap_or_default());
        }
        return Ok(());
    };
    if let Some((_, script)) = SCRIPTS.iter().find(|script| script.0 == name) {
        if words.len() < all {
            about(script).for_each(|line| println!("{line}"));
            return Ok(());
        }
        let (sh, words) = (shell()?, &words[1..]);
        return Ok(cmd!(sh, ".ci/{name} {words...}").run()?);
    }
    let command = COMMANDS.iter().find(|command| command.0 == name);
    let (_, file, action) =
        command.with_context(|| format!("has no command `{name}`: try --help"))?;
    if words.len() < all {
        help(file).for_each(|line| println!("{line}"));
        return Ok(());
    }
    let args = Arguments::from_vec(words[1..].iter().map(Into::into).collect());
    action(&shell()?, args).with_context(|| name.clone())
}

/// The text in the head of a file.
fn help(file: &str) -> impl Iterator<Item = &str> {
    let head = file.lines().map_while(|line| line.strip_prefix("//!"));
    head.map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// The text in the head of a script.
fn about(script: &str) -> impl Iterator<Item = &str> {
    let head = script.lines().skip(1);
    head.map_while(|line| line.strip_prefix("# "))
}

/// Refuses unknown arguments.
fn finish(args: Arguments) -> Result<()> {
    let left = args.finish();
    ensure!(left.is_empty(), "unexpected {left:?}; try `--help`");
    Ok(())
}
