//! The programs of README and guide: each page is a module, `guide.start`, with the classes and functions that it shows.

#[expect(unsafe_code, reason = "that is what the derive does away with")]
mod before;
#[allow(
    dead_code,
    unreachable_pub,
    unsafe_code,
    clippy::all,
    reason = "programs to be read: short ones, that show one thing"
)]
mod pages {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}
