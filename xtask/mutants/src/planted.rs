// The switch of planted bugs: the driver copies this file into each crate that it changes.
//
// The variable PLANTED has the number of the bug that is on. With PLANTED_REACHED, the name of a file, none is on, and
// each place that is reached appends its number to that file once, until `planted_forget` is called.

#![allow(unsafe_code, reason = "exports a function for the tests to call")]
#![allow(
    dead_code,
    unused,
    clippy::all,
    reason = "this file is no part of the crate"
)]

/// For bugs too: a crate without `std` finds a `Vec` here.
pub(crate) extern crate std;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::io::Write as _;

const UNKNOWN: u32 = u32::MAX;
const RECORD: u32 = u32::MAX - 1;
const PLACES: usize = 1 << 15;

static ON: AtomicU32 = AtomicU32::new(UNKNOWN);
static FILE: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();
static REACHED: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// Which of `count` bugs from number `first` on is on: 1 for the first of them, 0 if none is.
#[inline]
pub(crate) const fn at(first: u32, count: u32) -> u32 {
    core::intrinsics::const_eval_select((first, count), at_compile_time, at_run_time)
}

const fn at_compile_time(_: u32, _: u32) -> u32 {
    0
}

#[inline]
fn at_run_time(first: u32, count: u32) -> u32 {
    let on = ON.load(Relaxed);
    if on >= RECORD {
        return record(first, count);
    }
    let number = on.wrapping_sub(first);
    if number < count { number + 1 } else { 0 }
}

#[cold]
#[inline(never)]
fn record(first: u32, count: u32) -> u32 {
    if ON.load(Relaxed) == UNKNOWN {
        read_variables();
        return at_run_time(first, count);
    }
    if !REACHED[first as usize % PLACES].swap(true, Relaxed) {
        // Without an allocation: tests make those fail.
        let mut line = *b"R 00000\n";
        let mut rest = first;
        for digit in line[2..7].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let _ = FILE.get().map(|mut file| file.write_all(&line));
    }
    0
}

/// Reads the variables before `main`: tests that count allocations, or let them fail, must not meet those of the switch.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = read_variables;

extern "C" fn read_variables() {
    let number = || std::env::var("PLANTED").ok()?.parse().ok();
    if let Some(path) = std::env::var_os("PLANTED_REACHED") {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        let _ = FILE.set(file.expect("the file of PLANTED_REACHED"));
        ON.store(RECORD, Relaxed);
    } else {
        ON.store(number().unwrap_or(0), Relaxed);
    }
}

/// Turns on the bug with this number, in a process that was forked from one without a bug.
#[unsafe(no_mangle)]
pub extern "C" fn planted_choose(number: u32) {
    ON.store(number, Relaxed);
}

/// Every place counts as not reached again.
#[unsafe(no_mangle)]
pub extern "C" fn planted_forget() {
    REACHED.iter().for_each(|place| place.store(false, Relaxed));
}
