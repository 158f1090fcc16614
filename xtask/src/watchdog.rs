//! Reports a step that exceeds its time limit, and ends the processes that it started.
//!
//! The step runs on the thread that created the [`Watchdog`]; a second thread waits for the limit. When that is reached it prints
//! the processes below this one, and sends each a signal at which Python prints the stacks of its threads. The step then
//! fails, because its process failed; if it does not return all the same, this process exits.

use core::time::Duration;
use std::process::{Command, exit, id};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};

/// How long a process may take to print its stacks, and how long the step may take to return when its processes are gone.
const GRACE: Duration = Duration::from_secs(5);

/// Watches one step, until it is stopped.
pub(crate) struct Watchdog {
    stop: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    /// Starts to watch the step that the calling thread is about to run.
    pub(crate) fn start(step: String, limit: Duration) -> Self {
        let (stop, stopped) = channel();
        let thread = spawn(move || watch(&step, limit, &stopped));
        Self { stop, thread }
    }

    /// Stops the watchdog, and returns whether the step exceeded its limit.
    pub(crate) fn stop(self) -> bool {
        drop(self.stop);
        self.thread.join().unwrap_or(false)
    }
}

/// Returns when the step has ended: whether it exceeded its limit.
fn watch(step: &str, limit: Duration, stopped: &Receiver<()>) -> bool {
    // The channel carries nothing: it is closed when the step ends.
    let ended_within = |time| stopped.recv_timeout(time) == Err(CLOSED);
    if ended_within(limit) {
        return false;
    }
    println!("--- {step}: HANGS, it has not ended in {limit:.0?}. These processes run:");
    let all = processes();
    let running = descendants(&all, id());
    running.iter().for_each(|process| println!("{process}"));
    // Python prints the stacks of its threads at this signal if faulthandler is on, as it is under pytest.
    signal("ABRT", &running);
    let ended = ended_within(GRACE);
    // The remaining processes have no handler for that signal, or hang in it.
    signal("KILL", &descendants(&processes(), id()));
    if !ended && !ended_within(GRACE) {
        println!(
            "--- {step}: FAILED, it does not return although the processes that it started were killed"
        );
        exit(1);
    }
    true
}

const CLOSED: std::sync::mpsc::RecvTimeoutError = std::sync::mpsc::RecvTimeoutError::Disconnected;

/// A process, with its parent and its command line.
#[derive(Debug, PartialEq)]
struct Process {
    id: u32,
    parent: u32,
    command: String,
}

impl core::fmt::Display for Process {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // A test may pass a whole program as an argument.
        let command: String = self.command.chars().take(300).collect();
        write!(f, "{:>8} {}", self.id, command.replace('\n', "\\n"))
    }
}

/// All processes of the machine; none if the system does not list them.
fn processes() -> Vec<Process> {
    if cfg!(target_os = "linux") {
        // `ps` is missing from small images of Linux.
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let read = |entry: std::fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&words).replace('\0', " ");
            let parent = parent_in_stat(&stat)?;
            Some(Process {
                id,
                parent,
                command,
            })
        };
        return entries.filter_map(read).collect();
    }
    let list = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,args="])
        .output();
    let list = list.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    list.unwrap_or_default()
        .lines()
        .filter_map(parse_ps)
        .collect()
}

/// The parent in a text of `/proc/ID/stat`: the second word after the name, which is in parentheses and may contain any
/// character.
fn parent_in_stat(stat: &str) -> Option<u32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// A line of `ps -o pid=,ppid=,args=`.
fn parse_ps(line: &str) -> Option<Process> {
    let (id, rest) = line.trim_start().split_once(' ')?;
    let (parent, command) = rest.trim_start().split_once(' ')?;
    let (id, parent) = (id.parse().ok()?, parent.parse().ok()?);
    let command = command.to_owned();
    Some(Process {
        id,
        parent,
        command,
    })
}

/// The processes below one, parents first.
fn descendants(all: &[Process], root: u32) -> Vec<&Process> {
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            next.push(process.id);
            found.push(process);
        }
    }
    found
}

/// Sends a signal to processes; on a system without signals, kills this process and all below it.
fn signal(name: &str, processes: &[&Process]) {
    if cfg!(windows) {
        let tree = ["/F", "/T", "/PID", &id().to_string()].map(str::to_owned);
        // It kills this process, too; a process that cannot be killed is left to the system.
        let _ = Command::new("taskkill").args(tree).status();
        exit(1);
    }
    let ids = processes.iter().map(|process| process.id.to_string());
    // A process may have ended since the list was made, and then the shell's own `kill` fails for it alone.
    let mut kill = Command::new("sh");
    kill.args([
        "-c",
        "for id; do kill -s \"$0\" \"$id\" 2>/dev/null; done",
        name,
    ]);
    let _ = kill.args(ids).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_below_other_descendants() {
        let lines = [
            "  10 1 cargo xtask test",
            "11 10 python -m pytest",
            "  12 11 python -c code",
            "13 1 other",
            "x",
        ];
        let all: Vec<_> = lines.iter().filter_map(|line| parse_ps(line)).collect();
        assert_eq!(all.len(), 4);
        let found: Vec<_> = descendants(&all, 10)
            .iter()
            .map(|process| process.id)
            .collect();
        assert_eq!(found, [11, 12]);
        assert_eq!(parent_in_stat("12 (a ) S 7 b) S 11 12 0"), Some(11));
    }

    #[test]
    fn this_process_is_listed() {
        if cfg!(unix) {
            let all = processes();
            let own = all.iter().find(|process| process.id == id()).unwrap();
            assert!(
                all.iter().any(|process| process.id == own.parent),
                "{own:?}"
            );
            assert!(own.command.contains("xtask"), "{own:?}");
        }
    }
}
