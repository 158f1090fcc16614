//! What a test asks of the simulator: kernels, accesses of the host, faults, failures. In C's words, for ctypes.
#![expect(unsafe_code, reason = "functions that C and Python call by name")]

use core::ffi::{CStr, c_char};

use crate::access::Work;
use crate::codes::Code;
use crate::entry::{Shown, host, with_world};
use crate::gate;
use crate::raw::Out;
use crate::record::Call;
use crate::world::{Api, World};

/// Begins a new world with so many devices. What a process cannot undo stays: `cuInit`, retained primary contexts, and
/// addresses and handles, which are not used again.
#[unsafe(no_mangle)]
extern "C" fn sim_reset(devices: i32) {
    gate::release();
    with_world(|world| {
        let lasting = core::mem::take(&mut world.lasting);
        *world = World::new(devices, lasting);
    });
}

/// A kernel that reads or writes these bytes, on a stream of the calling thread's context or device. Gives the code
/// that a launch would give; `api` is 0 for CUDA, 1 for HIP.
#[unsafe(no_mangle)]
extern "C" fn sim_kernel(api: i32, stream: usize, address: usize, bytes: usize, write: i32) -> i32 {
    let api = if api == 0 { Api::Cuda } else { Api::Hip };
    let work = Work::Touch {
        address,
        bytes,
        write: write != 0,
    };
    let host = host();
    let arguments = [
        u64::from(api == Api::Hip),
        stream as u64,
        address as u64,
        bytes as u64,
        u64::from(write != 0),
    ];
    with_world(|world| {
        let done = world.work(api, host, stream, work, "a kernel");
        let code = done.err().map_or(0, |Code(code)| code);
        world.write_down(Call {
            thread: host.0,
            entry: "sim_kernel".into(),
            arguments: arguments.to_vec(),
            places: Vec::new(),
            code,
            planned: false,
            faults: 0,
        });
        code
    })
}

/// An access by the calling thread itself. The bytes stay as they are.
#[unsafe(no_mangle)]
extern "C" fn sim_host(address: usize, bytes: usize, write: i32) {
    let host = host();
    with_world(|world| {
        world.touch_on_host(host, address, bytes, write != 0);
        let arguments = [address as u64, bytes as u64, u64::from(write != 0)];
        world.did("sim_host", &arguments);
    });
}

/// All host threads have waited for each other, by means that the simulator cannot see: a channel, a lock, a join.
#[unsafe(no_mangle)]
extern "C" fn sim_hand_over() {
    let host = host();
    with_world(|world| {
        world.host(host);
        world.hand_over();
        world.did("sim_hand_over", &[]);
    });
}

/// Writes lines into a buffer, cut at its end, with a zero behind them. Gives the number of lines.
fn lines(lines: &[String], buffer: Out<u8>, bytes: usize) -> usize {
    if bytes > 0 {
        let text = lines.join("\n");
        let text = &text.as_bytes()[..text.len().min(bytes - 1)];
        for (index, &byte) in text.iter().enumerate() {
            buffer.at(index).give(byte);
        }
        buffer.at(text.len()).give(0);
    }
    lines.len()
}

/// The faults since the last reset, one a line, and how many they are.
#[unsafe(no_mangle)]
extern "C" fn sim_faults(buffer: Out<u8>, bytes: usize) -> usize {
    let bytes = if buffer.is_null() { 0 } else { bytes };
    with_world(|world| lines(&world.verdicts(), buffer, bytes))
}

/// Prints the entry points that were called since `sim_forget_calls`: for `atexit`, when no Python code can.
#[unsafe(no_mangle)]
extern "C" fn sim_print_calls(_: usize) {
    with_world(|world| {
        let calls: Vec<_> = world.calls.iter().map(|(entry, _)| *entry).collect();
        println!("{}", calls.join(" "));
    });
}

/// The entry points that were called since the last reset or `sim_forget_calls`, one a line, and how many they are.
#[unsafe(no_mangle)]
extern "C" fn sim_calls(buffer: Out<u8>, bytes: usize) -> usize {
    let bytes = if buffer.is_null() { 0 } else { bytes };
    with_world(|world| {
        let line = |(entry, arguments): &(&str, Vec<Option<Shown>>)| {
            arguments
                .iter()
                .flatten()
                .fold((*entry).to_owned(), |line, one| format!("{line}{one}"))
        };
        lines(
            &world.calls.iter().map(line).collect::<Vec<_>>(),
            buffer,
            bytes,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn sim_forget_calls() {
    with_world(|world| world.calls.clear());
}

/// The number of objects that are not destroyed or freed: 0 events, 1 allocations, 2 streams, 3 graphs, 4 user objects.
#[unsafe(no_mangle)]
extern "C" fn sim_live(kind: i32) -> i32 {
    let count = with_world(|world| match kind {
        0 => world
            .events
            .values()
            .filter(|event| !event.destroyed)
            .count(),
        1 => world.blocks.values().filter(|block| !block.freed).count(),
        2 => world
            .streams
            .values()
            .filter(|stream| stream.is_made() && !stream.destroyed)
            .count(),
        3 => world.graphs.len() + world.executables.len(),
        _ => world.user_objects.len(),
    });
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The calling thread's current context of CUDA, 0 for none.
#[unsafe(no_mangle)]
extern "C" fn sim_current_context() -> usize {
    let host = host();
    with_world(|world| world.host(host).context)
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller passes a string that ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// The `nth` next call of an entry point (1: the next) gives this code and does nothing; 0: none does.
#[unsafe(no_mangle)]
extern "C" fn sim_fail(entry: *const c_char, nth: u64, code: i32) {
    let entry = text(entry);
    with_world(|world| world.fail(&entry, nth, Code(code)));
}

/// Switches an option: `no-ctx-record-event` (`cuCtxRecordEvent` gives 801), `no-stream-ids` (so does
/// `cuStreamGetId`), `no-stream-devices` (and `hipStreamGetDevice`), `no-user-objects` (and `cuUserObjectCreate`),
/// `no-memory-pools` (a device without stream-ordered memory: `cuMemAllocAsync` gives 801), `lax-captures` (a capturing stream can be asked for its context and its
/// number), `edge-data` (an edge of each graph has data, so that `cuStreamGetCaptureInfo_v2` lists no nodes), `free-at-once`
/// (`cuMemFree` waits for nothing), `slow` (an event has happened only if the host knows), `no-record` (nothing is kept for the
/// second oracle from now on), `hand-over` (at each call all
/// threads have waited for each other), `reuse-handles` (a new stream gets the handle of one that was destroyed). And those by which a test finds out what its order hangs on: a call
/// that succeeds and orders nothing. `ignore-record`, `ignore-wait`, `ignore-ctx-record`, `ignore-event-synchronize`,
/// `ignore-query`, `ignore-stream-synchronize`, `ignore-synchronize-all` (a context or a device), and `ignore-legacy`: the legacy
/// stream and blocking streams do not wait for each other. And two broken rules, for the negative controls of xtask/gpu:
/// `refuse-status` (to ask whether a stream captures breaks its capture), `keep-objects` (a graph that ends releases no user object).
#[unsafe(no_mangle)]
extern "C" fn sim_switch(what: *const c_char, on: i32) {
    let what = text(what);
    with_world(|world| world.set_switch(&what, on != 0));
}

/// The next call that waits on the host is held until `sim_release`, two minutes at most. With the switch `hold-queries`, so is a
/// query of an event.
#[unsafe(no_mangle)]
extern "C" fn sim_hold() {
    gate::hold();
}

#[unsafe(no_mangle)]
extern "C" fn sim_release() {
    gate::release();
}

/// Whether a call is held.
#[unsafe(no_mangle)]
extern "C" fn sim_holding() -> i32 {
    i32::from(gate::is_holding())
}
