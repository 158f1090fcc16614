//! The state of both drivers: which things exist, what each line of work knows, what went wrong.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::capture::{Capture, CaptureId};
use crate::clock::{Clock, Line};
use crate::codes::{Answer, Code};
use crate::context::Context;
use crate::copy::Pending;
use crate::entry::Shown;
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::memory::Block;
use crate::record::Call;
use crate::second::Second;
use crate::stream::Stream;
use crate::user_object::{Due, UserObject};

/// The API that a program calls. CUDA and HIP share only the memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Api {
    Cuda,
    Hip,
}

impl Api {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
        }
    }
}

/// A thread of the operating system, as a number that no other thread of the process has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HostId(pub(crate) u64);

/// What the driver keeps for a thread of the operating system.
pub(crate) struct Host {
    pub(crate) line: Line,
    /// The handle of CUDA's current context, 0 for none.
    pub(crate) context: usize,
    /// HIP's current device.
    pub(crate) device: i32,
    /// What `cuThreadExchangeStreamCaptureMode` set.
    pub(crate) mode: i32,
}

/// What outlives `sim_reset`, since a process cannot take it back either.
#[derive(Default)]
pub(crate) struct Lasting {
    pub(crate) initialized: bool,
    /// How often each primary context is retained.
    pub(crate) retained: BTreeMap<i32, usize>,
    /// Handles are not used twice, so that the use of an old one is seen.
    pub(crate) last_handle: usize,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) lasting: Lasting,
    pub(crate) devices: i32,
    pub(crate) lines: Vec<Clock>,
    names: Vec<String>,
    pub(crate) hosts: BTreeMap<HostId, Host>,
    pub(crate) contexts: BTreeMap<usize, Context>,
    pub(crate) streams: BTreeMap<usize, Stream>,
    pub(crate) events: BTreeMap<usize, Event>,
    pub(crate) captures: BTreeMap<CaptureId, Capture>,
    /// Lists of nodes that were given out, by their addresses.
    pub(crate) fronts: BTreeMap<usize, (CaptureId, Clock)>,
    pub(crate) graphs: BTreeMap<usize, Graph>,
    pub(crate) executables: BTreeMap<usize, Executable>,
    pub(crate) user_objects: BTreeMap<usize, UserObject>,
    pub(crate) due: Due,
    /// What graphs held that are gone, while launches of theirs may run.
    pub(crate) ending: Vec<(Clock, Vec<usize>)>,
    pub(crate) blocks: BTreeMap<usize, Block>,
    pub(crate) pending: Vec<Pending>,
    /// Contexts, or devices of HIP, whose kernels reach the memory of another one.
    pub(crate) peers: BTreeSet<(usize, usize)>,
    pub(crate) faults: Vec<String>,
    /// The calls since the log was last cleared, with their arguments.
    pub(crate) calls: Vec<(&'static str, Vec<Option<Shown>>)>,
    /// The calls that have returned, and their readers.
    record: Vec<Call>,
    second: Second,
    /// By entry point: after how many calls of it one fails (1: the next), and with which code.
    failures: BTreeMap<String, VecDeque<(u64, Code)>>,
    switches: BTreeSet<String>,
}

impl World {
    pub(crate) fn new(devices: i32, lasting: Lasting) -> Self {
        let mut world = Self {
            lasting,
            devices,
            ..Self::default()
        };
        world.lasting.retained.retain(|device, _| *device < devices);
        world.did("sim_reset", &[devices.unsigned_abs().into()]);
        for device in 0..devices {
            world.open_context(Api::Hip, device, true);
            if let Some(&count) = world.lasting.retained.get(&device) {
                let context = world.open_context(Api::Cuda, device, true);
                let retained = [device.unsigned_abs().into(), context as u64, count as u64];
                world.did("sim_retained", &retained);
            }
        }
        world
    }

    /// What the first call of a driver says.
    pub(crate) fn initialize(&mut self, flags: u32) -> Answer {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.devices == 0 {
            return Err(Code::NO_DEVICE);
        }
        Ok(())
    }

    pub(crate) fn new_handle(&mut self) -> usize {
        self.lasting.last_handle += 1;
        // As far apart as real handles are, and far from the small numbers that name special streams.
        0x10_0000 + self.lasting.last_handle * 0x10
    }

    pub(crate) fn new_line(&mut self, name: String) -> Line {
        self.lines.push(Clock::default());
        self.names.push(name);
        Line(self.lines.len() - 1)
    }

    pub(crate) fn name(&self, line: Line) -> &str {
        &self.names[line.0]
    }

    pub(crate) fn clock(&mut self, line: Line) -> &mut Clock {
        &mut self.lines[line.0]
    }

    /// `later` goes on only when all is finished that `earlier` has begun.
    pub(crate) fn join(&mut self, later: Line, earlier: Line) {
        let known = self.lines[earlier.0].clone();
        self.clock(later).join(&known);
    }

    pub(crate) fn host(&mut self, id: HostId) -> &mut Host {
        if !self.hosts.contains_key(&id) {
            let line = self.new_line(format!("host thread {}", self.hosts.len() + 1));
            let host = Host {
                line,
                context: 0,
                device: 0,
                mode: 0,
            };
            self.hosts.insert(id, host);
        }
        self.hosts
            .get_mut(&id)
            .expect("it was put there if it was missing")
    }

    /// All host threads wait for each other, as by a channel or a lock that the simulator cannot see.
    pub(crate) fn hand_over(&mut self) {
        let mut all = Clock::default();
        for host in self.hosts.values() {
            all.join(&self.lines[host.line.0]);
        }
        let lines: Vec<_> = self.hosts.values().map(|host| host.line).collect();
        for line in lines {
            self.clock(line).join(&all);
        }
    }

    pub(crate) fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// What went wrong, and what the two oracles see differently.
    pub(crate) fn verdicts(&mut self) -> Vec<String> {
        let disagreements = self.second.read(&self.record);
        self.faults.iter().chain(disagreements).cloned().collect()
    }

    pub(crate) fn write_down(&mut self, call: Call) {
        // Of a program so long that it cannot be kept.
        if self.is_switched("no-record") && self.record.len() > 100 {
            return;
        }
        let faults = self.faults.len();
        self.record.push(Call { faults, ..call });
    }

    /// Writes down what a test has done beside the drivers' calls.
    pub(crate) fn did(&mut self, what: impl Into<Cow<'static, str>>, arguments: &[u64]) {
        self.write_down(Call {
            thread: crate::entry::host().0,
            entry: what.into(),
            arguments: arguments.to_vec(),
            places: Vec::new(),
            code: 0,
            planned: false,
            faults: 0,
        });
    }

    pub(crate) fn fail(&mut self, entry: &str, nth: u64, code: Code) {
        let planned = self.failures.entry(entry.to_owned()).or_default();
        if nth == 0 {
            planned.clear();
        } else {
            planned.push_back((nth, code));
        }
    }

    /// Writes the call down, and fails if that is planned.
    pub(crate) fn admit(&mut self, entry: &'static str, arguments: &[Option<Shown>]) -> Answer {
        self.calls.push((entry, arguments.to_vec()));
        let Some(planned) = self.failures.get_mut(entry) else {
            return Ok(());
        };
        for (left, _) in planned.iter_mut() {
            *left -= 1;
        }
        match planned.iter().position(|(left, _)| *left == 0) {
            Some(due) => Err(planned.remove(due).map_or(Code::UNKNOWN, |(_, code)| code)),
            None => Ok(()),
        }
    }

    pub(crate) fn set_switch(&mut self, what: &str, on: bool) {
        self.did(format!("switch {what}"), &[on.into()]);
        if on {
            self.switches.insert(what.to_owned());
        } else {
            self.switches.remove(what);
        }
    }

    pub(crate) fn is_switched(&self, what: &str) -> bool {
        self.switches.contains(what)
    }
}
