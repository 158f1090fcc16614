//! The number of instructions of each call, counted by valgrind; unlike times, they repeat exactly.
//!
//! The program runs itself under callgrind with two numbers of turns. The difference of the counts is that of the additional
//! turns.

mod calls;

use std::process::{Command, ExitCode};

use calls::{CALLS, Call};

const FEW: u64 = 1_000;
const MANY: u64 = 3_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["loop", group, name, turns] => run_loop(group, name, turns),
        // Cargo adds `--bench`; its other arguments are for criterion.
        _ => table(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("instructions: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The program that valgrind runs.
fn run_loop(group: &str, name: &str, turns: &str) -> Result<(), String> {
    let turns = turns
        .parse()
        .map_err(|error| format!("`{turns}`: {error}"))?;
    let call = CALLS
        .iter()
        .find(|call| (call.group, call.name) == (group, name))
        .ok_or_else(|| format!("there is no call `{group}` `{name}`"))?;
    (call.repeat)(turns);
    Ok(())
}

fn table() -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!(
            "SKIPPED instructions: valgrind is missing; Debian and Ubuntu have a package of that name"
        );
        return Ok(());
    }
    println!(
        "{:<10} {:<32} {:>12} {:>10}",
        "group", "call", "instructions", "above it"
    );
    let mut group = "";
    let mut floor = 0.0;
    for call in CALLS {
        let few = counted(call, FEW)?;
        let per_turn = (counted(call, MANY)? - few) / (MANY - FEW) as f64;
        if call.group != group {
            (group, floor) = (call.group, per_turn);
        }
        println!(
            "{:<10} {:<32} {per_turn:>12.1} {:>10.1}",
            call.group,
            call.name,
            per_turn - floor
        );
    }
    Ok(())
}

/// The instructions of the whole process.
fn counted(call: &Call, turns: u64) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["loop", call.group, call.name, &turns.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("valgrind reported no count:\n{report}"))
}
