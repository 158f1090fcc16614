//! Every mistake that the compiler can see, with the message that the user reads.
//!
//! A case is one file with one mistake, and its name is the mistake in words. Beside it lies what
//! rustc prints: one error, at the token that is wrong. After a change of a message,
//! `TRYBUILD=overwrite cargo test -p ui-tests --test ui` writes them anew; then read the diff as a
//! user would.

/// rustc words and draws its part of the messages anew with every release, so they are pinned on one.
#[rustversion::attr(
    not(stable(1.95)),
    ignore = "the messages are pinned on Rust 1.95, and this is another compiler"
)]
#[test]
fn mistakes_are_named_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    // What the grammar of one attribute refuses.
    cases.compile_fail("ui/attribute/*.rs");
    // What the derive refuses when it sees all attributes of an item together.
    cases.compile_fail("ui/rule/*.rs");
    // What the traits of `dlpack-core` refuse when the compiler knows the types.
    cases.compile_fail("ui/type/*.rs");
    // What is refused of Python's classes, by the attribute above their methods or by the types behind it.
    cases.compile_fail("ui/python/*.rs");
    // What is refused of the arguments of functions.
    cases.compile_fail("ui/argument/*.rs");
    // Those of any of these kinds in which rustc quotes the standard library, where its sources are installed.
    if has_sources_of_std() {
        eprintln!("ui/std: skipped, its messages are pinned without the component rust-src");
    } else {
        cases.compile_fail("ui/std/*.rs");
    }
}

fn has_sources_of_std() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = std::process::Command::new(rustc)
        .args(["--print", "sysroot"])
        .output();
    let sysroot = String::from_utf8(asked.expect("rustc runs").stdout).expect("a path");
    std::path::Path::new(sysroot.trim())
        .join("lib/rustlib/src/rust/library")
        .exists()
}

/// The neighbours of the mistakes: right code that a check which is too strict would refuse.
#[test]
fn right_code_compiles_and_runs() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}
