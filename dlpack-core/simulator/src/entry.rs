//! What every entry point has in common: one lock, the list of calls, failures on request.

use core::cell::Cell;
use core::fmt::{self, Display};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::codes::{Answer, Code};
use crate::gate;
use crate::record::{Call, Noted, noted};
use crate::user_object::Due;
use crate::world::{Api, HostId, Lasting, World};

static WORLD: LazyLock<Mutex<World>> =
    LazyLock::new(|| Mutex::new(World::new(1, Lasting::default())));

pub(crate) fn with_world<T>(body: impl FnOnce(&mut World) -> T) -> T {
    body(&mut WORLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The calling thread of the operating system.
pub(crate) fn host() -> HostId {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    std::thread_local! {
        static ID: HostId = HostId(COUNT.fetch_add(1, Ordering::Relaxed));
    }
    // While a thread ends, its own number may be gone; number 0 stands for all such threads.
    ID.try_with(|id| *id).unwrap_or(HostId(0))
}

/// Whether a call waits on the host.
pub(crate) enum Waits {
    No,
    Yes,
    /// If this is memory whose free waits.
    ForFree(usize),
    /// If this is pageable memory, to which a copy waits.
    ForCopyTo(usize),
}

/// Does a call: `entry` and its `arguments` are written down, then it fails if that is planned, waits at the gate if it
/// waits at all, and does its work.
pub(crate) fn call(
    api: Api,
    entry: &'static str,
    arguments: &[Option<Shown>],
    waits: &Waits,
    body: impl FnOnce(&mut World, HostId) -> Answer,
) -> i32 {
    let waiting = with_world(|world| {
        if DESTRUCTS.get() {
            world.fault(format!(
                "{entry} is called by the destructor of a user object"
            ));
            world.did("sim_called_by_destructor", &[]);
        }
        world.admit(entry, arguments)?;
        let needs_nothing = entry == "cuInit" || entry.starts_with("cuGetError");
        if api == Api::Cuda && !world.lasting.initialized && !needs_nothing {
            return Err(Code::NOT_INITIALIZED);
        }
        Ok(match waits {
            Waits::No => world.is_switched("hold-queries") && entry.ends_with("EventQuery"),
            Waits::Yes => true,
            Waits::ForFree(address) => world.free_waits(*address),
            Waits::ForCopyTo(address) => world.block(*address).is_none(),
        })
    });
    if waiting == Ok(true) {
        gate::pass();
    }
    let host = host();
    let planned = waiting.is_err();
    let done = with_world(|world| {
        noted();
        let done = waiting.and_then(|_| {
            if world.is_switched("hand-over") {
                world.hand_over();
            }
            let done = body(world, host);
            world.let_go_of_ended(host);
            done
        });
        let code = done.as_ref().err().map_or(0, |code| code.0);
        world.write_down(Call {
            thread: host.0,
            entry: entry.into(),
            arguments: arguments
                .iter()
                .flatten()
                .map(|argument| argument.value)
                .collect(),
            places: noted(),
            code,
            planned,
            faults: 0,
        });
        done
    });
    let due = with_world(|world| core::mem::take(&mut world.due));
    if !due.is_empty() {
        let ended = std::thread::spawn(|| end(due)).join();
        ended.expect("destructors of C do not panic");
    }
    match done {
        Ok(()) => 0,
        Err(Code(code)) => code,
    }
}

std::thread_local! {
    /// Whether this is the driver's thread, which calls destructors.
    static DESTRUCTS: Cell<bool> = const { Cell::new(false) };
}

fn end(due: Due) {
    DESTRUCTS.set(true);
    for (destructor, data) in due {
        destructor(data);
    }
}

/// An argument in the record of calls. The list of calls shows those that have a name: streams, events, contexts.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    name: &'static str,
    value: u64,
}

impl Shown {
    pub(crate) const fn of(value: u64) -> Self {
        let name = "";
        Self { name, value }
    }
}

impl Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            "" => Ok(()),
            name => write!(out, " {name}={:#x}", self.value),
        }
    }
}

/// What is passed to an entry point: numbers, or places for results.
pub(crate) trait Argument {
    fn shown(&self) -> Option<Shown>;
}

impl<T: Noted> Argument for T {
    fn shown(&self) -> Option<Shown> {
        self.noted().map(Shown::of)
    }
}

macro_rules! handles {
    ($($(#[$meta:meta])* $type:ident $name:literal,)*) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub(crate) struct $type(pub(crate) usize);

        impl Argument for $type {
            fn shown(&self) -> Option<Shown> {
                let (name, value) = ($name, self.0 as u64);
                Some(Shown { name, value })
            }
        }
    )*};
}

/// The flags of an event.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Flags(pub(crate) u32);

impl Argument for Flags {
    fn shown(&self) -> Option<Shown> {
        let (name, value) = ("flags", u64::from(self.0));
        Some(Shown { name, value })
    }
}

handles! {
    /// `CUstream`, `hipStream_t`.
    StreamHandle "stream",
    /// `CUevent`, `hipEvent_t`.
    EventHandle "event",
    /// `CUcontext`.
    ContextHandle "context",
}

impl Argument for Option<crate::user_object::Destructor> {
    fn shown(&self) -> Option<Shown> {
        None
    }
}

impl<T> Argument for crate::raw::Out<T> {
    fn shown(&self) -> Option<Shown> {
        None
    }
}

/// Defines entry points, in C's words on the left and in the simulator's on the right. `waits` marks those that may
/// wait on the host.
macro_rules! entries {
    ($api:ident $($(#[waits($waits:expr)])? fn $entry:ident($($argument:ident: $type:ty),* $(,)?)
        |$world:ident, $host:ident, $label:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $entry($($argument: $type),*) -> i32 {
            let arguments: &[Option<$crate::entry::Shown>] =
                &[$($crate::entry::Argument::shown(&$argument)),*];
            let waits = entries!(@waits $($waits)?);
            let $label = stringify!($entry);
            $crate::entry::call($crate::world::Api::$api, $label, arguments, &waits, |$world, $host| {
                $body
            })
        }
    )*};
    (@waits) => { $crate::entry::Waits::No };
    (@waits $waits:expr) => { $waits };
}
pub(crate) use entries;
