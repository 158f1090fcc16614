//! Run the tests of core under Miri, and with them the code that the derive generates.
//!
//! Miri reports undefined behaviour also if the program runs normally: it interprets the program, and checks aliasing,
//! provenance, initialised memory, leaks and data races. Every test runs twice, by the rules of Tree Borrows and by those of
//! Stacked Borrows, both with strict provenance. Needs the nightly compiler; installs its component `miri` if it is missing.
//! `DLPACK_CASES` sets the number of random cases, 6 if it is not set.
//! usage: `cargo xtask miri [--short] [FILTER]`
//!   --short   the tests of owners, of shared memory and of the modules of core, as `cargo xtask ci` runs them
//!   FILTER    only the tests with this word in their names
//!
//! Core has its default features. Inline assembly (`memory/atomic.rs`) is replaced by a loop over single bytes. The derive's own
//! tests are left out: they have no `unsafe` code, and Miri runs no unit tests of a crate of macros. `tests/drivers.rs` loads C
//! libraries, and is empty here. Also left out, because Miri runs no C code, and is some hundred times slower than the CPU:
//!   skip c_code_reads_our_structs    starts a C compiler
//!   skip layouts_are_those_of_the_c_  likewise
//!   skip header_is_also_cpp          starts a C++ compiler
//!   skip a_file_is_mapped            maps a file
//!   skip more_bools_than_memory_has  reads two million values
//!   skip overlap_and_gaps_are_never  a million cases of arithmetic, without `unsafe` code
//!   skip a_shared_byte_is_never      thousands of cases of arithmetic, without `unsafe` code
//!   skip two_columns_are_told_apart  likewise
//!   skip fast_paths_agree_with       likewise
//!   skip given_strides_agree_with    likewise
//!   skip inferred_and_given_layouts  likewise
//!   skip every_plan_                 likewise
//! Left out by `--short`, because each takes from five seconds to a minute:
//!   long a_value_cannot
//!   long an_export_is_one_allocation
//!   long out_of_memory_at_every
//!   long any_shape_and_strides
//!   long directed_cases
//!   long ranges_and_fills
//!   long ranges_of_every_length
//!   long small_floats_are_those
//!   long transpositions
//!   long views_of_contiguous

use crate::prelude::*;

/// The rules for references, and the option of Miri that chooses them.
const RULES: [(&str, &str); 2] = [
    ("Tree Borrows", "-Zmiri-tree-borrows"),
    ("Stacked Borrows", ""),
];

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let short = args.contains("--short");
    let filter: Option<String> = args.opt_free_from_str()?;
    finish(args)?;
    let step = |(rules, option)| {
        let filter = filter.clone();
        let step = Step::new(rules, move |sh| {
            install(sh)?;
            interpret(sh, option, short, filter.as_deref())
        });
        // On a busy machine the tests take longer than the usual limit, an hour.
        step.limit(4 * HOUR)
    };
    run_all(sh, "miri", RULES.map(step).into(), true)
}

/// The short run, under both rules.
pub(crate) fn short(sh: &Shell) -> Result<()> {
    if !succeeds(cargo_of(sh, "nightly").line("miri --version")) {
        return skip("Miri is missing; `cargo xtask miri` adds it to a nightly toolchain");
    }
    let mut rules = RULES.iter();
    rules.try_for_each(|(_, option)| interpret(sh, option, true, None))
}

/// Adds Miri to the nightly toolchain.
fn install(sh: &Shell) -> Result<()> {
    if !succeeds(cargo_of(sh, "nightly").arg("--version")) {
        return skip("no nightly toolchain here; `rustup toolchain install nightly` adds it");
    }
    if !succeeds(cargo_of(sh, "nightly").line("miri --version")) {
        println!("Miri is missing: adding it to the nightly toolchain");
        sh.line("rustup component add miri rust-src --toolchain nightly")
            .run()?;
    }
    Ok(())
}

fn interpret(sh: &Shell, option: &str, short: bool, filter: Option<&str>) -> Result<()> {
    let test = cargo_of(sh, "nightly").line("miri test -p dlpack-core --no-fail-fast --lib");
    let test = test.line(if short {
        "--test owners --test owned_slices --test shared --test slices"
    } else {
        "--tests"
    });
    let test = test.arg("--").args(filter);
    let left_out = left_out("skip").chain(left_out("long").filter(move |_| short));
    let test = test.args(left_out.flat_map(|name| ["--skip", name]));
    // The tests read files, the environment and the clock.
    let flags = format!("-Zmiri-strict-provenance -Zmiri-disable-isolation {option}");
    let cases = std::env::var("DLPACK_CASES").unwrap_or("6".to_owned());
    let test = test.env("MIRIFLAGS", flags).env("DLPACK_CASES", cases);
    // Under Miri the trace of one panic takes a second.
    let test = test.env("RUST_BACKTRACE", "0");
    // Miri runs a program in the folder of the checkout that built it, which may be gone.
    let checkout = root().to_string_lossy().replace(['/', '\\', ':'], "-");
    let target = target_dir().join("miri").join(checkout);
    Ok(test.env("CARGO_TARGET_DIR", target).run()?)
}

/// The tests that the head of this file leaves out, by the first word of their lines.
fn left_out(word: &str) -> impl Iterator<Item = &'static str> {
    let lines = crate::help(include_str!("miri.rs"));
    let names =
        lines.filter_map(move |line| line.trim_start().strip_prefix(word)?.strip_prefix(' '));
    names.filter_map(|line| line.split(' ').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_is_left_out_exists() {
        let sources = texts(&shell().unwrap(), &["dlpack-core/*.rs"]).unwrap();
        for name in left_out("skip").chain(left_out("long")) {
            let start = format!("fn {name}");
            let is_there = sources.iter().any(|(_, text)| text.contains(&start));
            assert!(is_there, "no test begins with {name}");
        }
        assert_eq!(left_out("skip").next(), Some("c_code_reads_our_structs"));
    }
}
