//! Negative controls: drivers in which one call orders nothing, and consumers that do not wait, must cause faults.

use crate::cells::Cell;
use crate::lanes::Lanes;
use crate::memory::World;
use crate::oracle::Rules;
use crate::run::{Run, run};

/// Counts the cases with faults, which must be assert_faulty_cases those of `expected`.
#[track_caller]
fn assert_faulty_cases(how: Run, expected: impl Fn(&Rules<'_>) -> bool) -> (usize, usize) {
    let mut wrong = Vec::new();
    let (mut found, mut count) = (0, 0);
    for cell in Cell::for_controls() {
        count += 1;
        let expected = {
            let world = World::new(cell.kind.api());
            let lanes = Lanes::of(&cell, &world);
            expected(&Rules {
                cell: &cell,
                lanes: &lanes,
                world: &world,
                captures: &[],
            })
        };
        match run(&cell, how) {
            Ok(faults) if faults.is_empty() != expected => found += usize::from(expected),
            other => wrong.push(format!("{cell:?}\n    expected {expected}: {other:?}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{how:?}: {} of {count} cases are wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    (found, count)
}

#[track_caller]
fn without(call: &'static str) {
    let (found, count) = assert_faulty_cases(Run::Ignoring(call), |rules| rules.hangs_on(call));
    assert!(
        0 < found && found < count,
        "{call}: {found} of {count} cases"
    );
    println!("{call}: {found} of {count} cases");
}

#[test]
fn without_records() {
    without("ignore-record");
}

#[test]
fn without_waits() {
    without("ignore-wait");
}

#[test]
fn without_records_of_contexts() {
    without("ignore-ctx-record");
}

#[test]
fn without_answers_about_events() {
    without("ignore-query");
}

#[test]
fn without_waits_for_streams_on_the_host() {
    without("ignore-stream-synchronize");
}

#[test]
fn without_waits_for_everything() {
    without("ignore-synchronize-all");
}

#[test]
fn without_the_order_of_default_streams() {
    without("ignore-legacy");
}

#[test]
fn unordered_consumers_that_make_no_order_read_too_early() {
    let (found, _) = assert_faulty_cases(Run::Hasty, |rules| {
        let pending = rules.lanes.producer.zip(rules.lanes.reader);
        rules.cell.ask.is_unordered()
            && pending.is_some_and(|(producer, reader)| !producer.is_ordered_with(reader))
    });
    assert!(found > 0);
}
