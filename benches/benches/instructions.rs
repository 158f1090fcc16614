//! The number of instructions of each call, counted by valgrind; unlike times, they repeat exactly.
//!
//! It fails if one of our calls takes more than [`EXPECTED`], by more than [`TOLERANCE`].
//!
//! The program runs itself under callgrind with two numbers of turns. The difference of the counts is that of the additional
//! turns.

mod calls;

use std::process::{Command, ExitCode};

use calls::{CALLS, Call};

/// The instructions of our calls, as benches/README.md lists them, on x86-64 Linux.
const EXPECTED: [(&str, &str, f64); 9] = [
    ("moved", "into_dlpack", 496.0),
    ("moved", "into_dlpack, newtype", 496.0),
    ("moved", "into_dlpack_with, legacy", 636.0),
    ("shared", "Arc::to_dlpack", 328.0),
    ("shared", "Arc::to_dlpack_with, versioned", 455.0),
    ("shared", "and back: from_raw, view", 840.0),
    ("described", "describe", 103.0),
    ("described", "describe, padded rows", 699.0),
    ("copied", "to_dlpack_with, copy", 1475.0),
];

/// How much more is no failure: compilers and C libraries differ.
const TOLERANCE: f64 = 1.1;

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
        return Err(
            "valgrind is missing; Debian and Ubuntu have a package of that name".to_owned(),
        );
    }
    println!(
        "{:<10} {:<32} {:>12} {:>10}",
        "group", "call", "instructions", "above it"
    );
    let mut group = "";
    let mut floor = 0.0;
    let (mut expected, mut slower) = (EXPECTED.to_vec(), Vec::new());
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
        for (group, name, most) in
            expected.extract_if(.., |row| (row.0, row.1) == (call.group, call.name))
        {
            if per_turn > most * TOLERANCE {
                slower.push(format!(
                    "`{group}` `{name}` takes {per_turn}, expected {most}"
                ));
            }
        }
    }
    if !expected.is_empty() {
        return Err(format!("there are no such calls: {expected:?}"));
    }
    if slower.is_empty() || !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(());
    }
    Err(slower.join("; "))
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
