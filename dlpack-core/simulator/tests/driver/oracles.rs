//! The two oracles: each notices a wrong rule of the other.

use crate::simulator::{Driver, GLOBAL, LEGACY, Sim};

/// Runs a program that is correct by this rule only.
fn hangs_on(rule: &str, sim: &Sim, cuda: Driver) {
    let memory = cuda.alloc_managed(8);
    let [one, other] = [cuda.non_blocking(), cuda.non_blocking()];
    let event = cuda.event();
    cuda.write(one, memory, 8);
    let done = match rule {
        "record" | "wait" => {
            cuda.order(one, other);
            cuda.read(other, memory, 8);
            return;
        }
        "legacy" => {
            let blocking = cuda.blocking();
            cuda.synchronize().unwrap();
            cuda.write(blocking, memory, 8);
            cuda.write(LEGACY, memory, 8);
            return;
        }
        "ctx-record" => {
            let context = sim.current_context();
            cuda.record_context(context, event).unwrap();
            cuda.wait(other, event).unwrap();
            cuda.read(other, memory, 8);
            return;
        }
        "event-synchronize" => cuda.record(event, one).and(cuda.synchronize_event(event)),
        "query" => cuda.record(event, one).and(cuda.query_event(event)),
        "stream-synchronize" => cuda.synchronize_stream(one),
        "synchronize-all" => cuda.synchronize(),
        other => unreachable!("{other}"),
    };
    assert_eq!(done, Ok(()), "{rule}");
    sim.host_read(memory, 8);
}

const RULES: [&str; 8] = [
    "record",
    "wait",
    "legacy",
    "ctx-record",
    "event-synchronize",
    "query",
    "stream-synchronize",
    "synchronize-all",
];

#[test]
fn a_rule_that_one_oracle_has_wrong_is_noticed_by_the_other() {
    for rule in RULES {
        let sim = Sim::new(1);
        hangs_on(rule, &sim, sim.cuda());
        sim.assert_clean();
        drop(sim);
        for (wrong, other) in [("ignore", "first"), ("misread", "second")] {
            let sim = Sim::new(1);
            sim.switch("deaf", true);
            sim.switch(&format!("{wrong}-{rule}"), true);
            hangs_on(rule, &sim, sim.cuda());
            let found = sim.disagreements();
            let expected = format!("the {other} oracle alone sees");
            assert_eq!(found.len(), 1, "{rule}, {wrong}: {found:?}");
            assert!(found[0].contains(&expected), "{rule}, {wrong}: {found:?}");
        }
    }
}

/// A driver that wrongly breaks a capture, or reports that it does.
#[test]
fn a_code_that_the_second_oracle_does_not_expect_is_noticed() {
    let program = |sim: &Sim| {
        let cuda = sim.cuda();
        let [stream, other] = [cuda.blocking(), cuda.non_blocking()];
        cuda.begin_capture(stream, GLOBAL).unwrap();
        let event = cuda.event();
        let recorded = cuda.record(event, other);
        let asked = cuda.is_capturing(LEGACY);
        (recorded, asked, cuda.end_capture(stream).map(drop))
    };
    let sim = Sim::new(1);
    assert_eq!(program(&sim), (Ok(()), Err(906), Ok(())));
    sim.assert_clean();
    drop(sim);
    for (entry, code) in [
        ("cuEventRecord", 900),
        ("cuStreamIsCapturing", 900),
        ("cuStreamEndCapture", 901),
    ] {
        let sim = Sim::new(1);
        sim.switch("deaf", true);
        sim.fail(entry, 1, code);
        // Only the disagreement matters, not the result.
        let _ = program(&sim);
        let found = sim.disagreements();
        assert_eq!(found.len(), 1, "{entry}: {found:?}");
        assert!(found[0].contains(entry), "{entry}: {found:?}");
    }
}
