//! Every way to export memory of a device, on the simulator: no consumer reads too early, and nothing is freed too early.
//!
//! A case (`cells.rs`, `lanes.rs`) determines the streams of producer and consumer, what is captured, and when the tensor is
//! dropped. The expected result follows from rules that are written down independently of the code (`oracle.rs`). The runner
//! (`run.rs`, `graphs.rs`) plays the case and compares. Negative controls (`controls.rs`) show that the comparison works: with a
//! driver in which one call orders nothing, exactly the cases that depend on the call go wrong.
//!
//! STC-01, STC-02, STC-03, STC-04, STC-05, STC-08, STC-09, STC-15, STC-17, STR-01, STR-02, STR-04, STR-05, STR-08.
#![cfg(target_os = "linux")]

mod bindings;
mod calls;
mod cells;
mod collector;
mod controls;
mod copies;
mod forks;
mod graphs;
mod held;
mod kept;
mod lanes;
#[path = "../memory/mod.rs"]
mod memory;
mod oracle;
mod processes;
mod run;
mod second_device;
#[path = "../simulator/mod.rs"]
mod simulator;
mod sweeps;
mod tensors;
mod threads;
mod torch;
mod values;

use cells::{Captures, Cell, Drops};
use run::{LAX, Run, run};

/// Runs all cases under both readings of the manuals, and reports the failures of all.
#[track_caller]
fn check(cells: impl Iterator<Item = Cell> + Clone) -> usize {
    LAX.set(true);
    check_once(
        cells
            .clone()
            .filter(|cell| cell.captures != Captures::Nothing),
    );
    LAX.set(false);
    check_once(cells)
}

#[track_caller]
fn check_once(cells: impl Iterator<Item = Cell>) -> usize {
    let mut wrong = Vec::new();
    let mut count = 0;
    for cell in cells {
        count += 1;
        if let Err(what) = run(&cell, Run::Whole) {
            wrong.push(format!("{cell:?}\n    {what}"));
        }
        // Leftovers of failed cases affect later ones, so it stops after a few.
        if wrong.len() == 10 {
            break;
        }
    }
    println!("{count} cases");
    assert!(
        wrong.is_empty(),
        "wrong in {count} cases:\n{}",
        wrong.join("\n")
    );
    count
}

#[test]
fn without_captures() {
    let count = check(Cell::all_without_captures());
    assert!(count > 2000, "{count} cases");
}

#[test]
fn beside_captures_and_dropped_after_them() {
    let count = check(Cell::all_with_captures(Drops::After));
    assert!(count > 2000, "{count} cases");
}

#[test]
fn beside_captures_and_dropped_in_them() {
    let count = check(Cell::all_with_captures(Drops::Before));
    assert!(count > 2000, "{count} cases");
}
