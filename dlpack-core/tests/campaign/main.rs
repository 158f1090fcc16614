//! Campaigns with hostile producers and with safe code whose answers change from call to call: thousands of cases here, millions
//! under `cargo xtask faults`.
//!
//! `DLPACK_CASES` sets the number of cases, `DLPACK_SEED` the seed of the first. Each campaign appends a line to the file named
//! by `DLPACK_TALLY`; the line contains `DLPACK_ON`, which describes the build.

#![expect(
    unsafe_code,
    reason = "makes C structs by hand, takes them over, and lends their memory"
)]

#[path = "../dice/mod.rs"]
mod dice;
#[path = "../forgery/mod.rs"]
mod forgery;
mod liars;
#[path = "../made/mod.rs"]
mod made;
mod tensors;

use std::io::Write as _;

use dice::{Dice, play};

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a number"))
}

/// Runs the cases of a campaign and records the result. `case` returns whether it got as far as a tensor. Fails if a case panics,
/// or if fewer than a fifth of the cases return `true`.
fn campaign(name: &str, cases: u64, mut case: impl FnMut(&mut Dice) -> bool) {
    let cases = setting("DLPACK_CASES", if cfg!(miri) { cases / 100 } else { cases });
    if cases > 1 {
        // Only the first failed case is reported, with its seed; a run of that case alone prints its panic.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let clock = std::time::Instant::now();
    let (mut played, mut fruitful) = (0, 0);
    let seed = setting("DLPACK_SEED", 0x5eed);
    let (bad, first) = play(seed, cases, |dice| {
        played += 1;
        fruitful += u64::from(case(dice));
    });
    let note = first.unwrap_or_default();
    if let Ok(path) = std::env::var("DLPACK_TALLY") {
        let line = serde_json::json!({
            "campaign": name,
            "on": std::env::var("DLPACK_ON").unwrap_or_default(),
            "count": played,
            "planned": cases,
            "bad": bad,
            "seconds": clock.elapsed().as_secs(),
            "note": note,
        });
        let mut options = std::fs::OpenOptions::new();
        let file = options.append(true).create(true).open(path);
        // A single write, because other processes may append to the file at the same time.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.expect("the tally can be written");
    }
    println!("{name}: {bad} of {cases} bad");
    if bad != 0 {
        eprintln!("{name}: {bad} of {cases} bad; {note}");
        panic!("{note}");
    }
    assert_eq!(played, cases, "cases that were played");
    assert!(fruitful >= cases / 5, "only {fruitful} came to something");
}
