//! The time limit of a test process, and its end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit of a test process. The limit of CPU time finds endless loops, so this one only has to find processes that wait
/// forever. On a busy machine a process may get little CPU time, but not none.
pub struct Watch {
    group: u32,
    begin: Instant,
    end: Instant,
    /// The processor time of the group, and when it was last more than a few ticks.
    ticks: u64,
    changed: Instant,
    looked: Instant,
}

/// A process group that uses almost no CPU time for this long is deadlocked: no test sleeps half as long.
const IDLE: Duration = Duration::from_secs(30);

/// The CPU time of threads that only poll: less than a hundredth of a CPU.
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

    /// The time until the next check: most processes take few milliseconds.
    pub fn pause(&self) -> Duration {
        let pause = self.begin.elapsed() / 8;
        pause.clamp(Duration::from_micros(500), Duration::from_millis(20))
    }

    /// Whether to kill the process.
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
        // The name of the program, in parentheses, may contain spaces; then follow state, parent, group, ..
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
