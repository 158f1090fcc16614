//! How long a process of tests may take, and its end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a process of tests may take. The limit of processor time finds loops without an end, so this only has to find what
/// waits for ever. On a busy machine a process may get little time, but not none at all.
pub struct Watch {
    group: u32,
    begin: Instant,
    end: Instant,
    /// The processor time of the group, and when it was last more than a few ticks.
    ticks: u64,
    changed: Instant,
    looked: Instant,
}

/// A group of processes that uses next to no processor time for so long is in a deadlock: no test sleeps half as long.
const IDLE: Duration = Duration::from_secs(30);

/// What threads use that only look from time to time whether something has changed: less than a hundredth of a processor.
const FEW_TICKS: u64 = 20;

impl Watch {
    pub fn new(group: u32, limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            group,
            begin: now,
            end: now + limit,
            ticks: 0,
            changed: now,
            looked: now,
        }
    }

    /// How long to wait before the next look: most processes take few milliseconds.
    pub fn pause(&self) -> Duration {
        let pause = self.begin.elapsed() / 8;
        pause.clamp(Duration::from_micros(500), Duration::from_millis(20))
    }

    /// Whether the process shall end.
    pub fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now - self.looked > Duration::from_secs(1) {
            self.looked = now;
            let ticks = ticks_of_group(self.group);
            if ticks > self.ticks + FEW_TICKS {
                (self.ticks, self.changed) = (ticks, now);
            }
        }
        now > self.end || now - self.changed > IDLE
    }
}

/// The processor time of a group of processes in the units of `/proc`, with that of their children that have ended.
fn ticks_of_group(group: u32) -> u64 {
    let ticks = |entry: fs::DirEntry| -> Option<u64> {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name of the program, in parentheses, may have spaces; behind it: state, parent, group, ..
        let words: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if words.get(2)?.parse() != Ok(group) {
            return None;
        }
        words
            .get(11..15)?
            .iter()
            .map(|word| word.parse::<u64>().ok())
            .sum()
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(ticks).sum()
}

pub fn end_group(group: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{group}")])
        .stderr(Stdio::null())
        .status();
}
