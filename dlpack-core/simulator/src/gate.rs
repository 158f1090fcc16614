//! Holds a call that waits on the host until a test releases it, so that tests see which other calls continue meanwhile.

use core::time::Duration;
use std::sync::{Condvar, Mutex, PoisonError};

/// A test that never lets go still ends.
const AT_MOST: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The next call that waits is to be held.
    Armed,
    /// A call is held.
    Holding,
}

static STATE: Mutex<State> = Mutex::new(State::Open);
static CHANGED: Condvar = Condvar::new();

fn set(state: State) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = state;
    CHANGED.notify_all();
}

pub(crate) fn hold() {
    set(State::Armed);
}

pub(crate) fn release() {
    set(State::Open);
}

pub(crate) fn is_holding() -> bool {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) == State::Holding
}

/// Returns at once, unless a test holds the next call.
pub(crate) fn pass() {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if *state != State::Armed {
        return;
    }
    *state = State::Holding;
    let held = CHANGED.wait_timeout_while(state, AT_MOST, |state| *state == State::Holding);
    let (mut state, _) = held.unwrap_or_else(PoisonError::into_inner);
    if *state == State::Holding {
        *state = State::Open;
    }
}
