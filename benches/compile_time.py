#!/usr/bin/env python3
"""What 200 derived types cost the compiler, ours beside those of serde and thiserror, in one run.

    python3 benches/compile_time.py
    python3 benches/compile_time.py --types 50 --rounds 3

Writes one crate for each of the derives, and one whose types derive nothing: the floor. Each has the same
number of types, of a few usual forms. The dependencies are built first; then every round touches and
rebuilds each crate alone, one after another, and counts the processor time that cargo and rustc spend on it
(user and system; a busy machine changes that less than the time on the clock). Incremental compilation is
off. The numbers are medians over the rounds; a ratio compares the times of the same round.

With --trees it also builds the dependencies of each from nothing, once.

The crates lie in a cache folder outside the checkout (--work), so that cargo finds on the second run what it
has fetched on the first.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


def ours(n):
    """Data and a shape, data alone, a newtype, padded rows."""
    return [
        f"""
        #[derive(dlpack_core::DLPack)]
        pub struct Image{n} {{
            #[dlpack(data)]
            pub pixels: Vec<f32>,
            #[dlpack(shape)]
            pub dims: [usize; 3],
            pub name: String,
        }}""",
        f"""
        #[derive(dlpack_core::DLPack)]
        pub struct Samples{n} {{
            #[dlpack(data)]
            pub samples: std::sync::Arc<[[i16; 2]]>,
            pub rate: u32,
        }}""",
        f"""
        #[derive(dlpack_core::DLPack)]
        pub struct Plane{n}(pub Vec<f64>);""",
        f"""
        #[derive(dlpack_core::DLPack)]
        #[dlpack(shape = [rows, cols], strides = [pitch, _])]
        pub struct Padded{n} {{
            #[dlpack(data)]
            pub bytes: Box<[u8]>,
            pub rows: usize,
            pub cols: usize,
            pub pitch: usize,
        }}""",
    ][n % 4]


def fields(n, derive):
    """The same types without what only we understand."""
    return [
        f"""
        {derive}
        pub struct Image{n} {{
            pub pixels: Vec<f32>,
            pub dims: [usize; 3],
            pub name: String,
        }}""",
        f"""
        {derive}
        pub struct Samples{n} {{
            pub samples: Vec<[i16; 2]>,
            pub rate: u32,
        }}""",
        f"""
        {derive}
        pub struct Plane{n}(pub Vec<f64>);""",
        f"""
        {derive}
        pub struct Padded{n} {{
            pub bytes: Box<[u8]>,
            pub rows: usize,
            pub cols: usize,
            pub pitch: usize,
        }}""",
    ][n % 4]


def error(n):
    """What error types are: structs with numbers, an enum of causes, a wrapper."""
    return [
        f"""
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read {{path}} at {{line}}: {{reason}}")]
        pub struct Read{n} {{
            pub path: String,
            pub line: usize,
            pub reason: String,
        }}""",
        f"""
        #[derive(Debug, thiserror::Error)]
        #[error("{{found}} of {{needed}} bytes")]
        pub struct Short{n} {{
            pub found: usize,
            pub needed: usize,
        }}""",
        f"""
        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        pub struct Wrapped{n}(#[from] pub std::io::Error);""",
        f"""
        #[derive(Debug, thiserror::Error)]
        pub enum Cause{n} {{
            #[error("cannot open {{path}}")]
            Open {{ path: String, source: std::io::Error }},
            #[error("no number")]
            Number(#[from] std::num::ParseIntError),
            #[error("nothing there")]
            Nothing,
        }}""",
    ][n % 4]


CORE = f'dlpack-core = {{ path = "{(ROOT / "dlpack-core").as_posix()}" }}'
SERDE = 'serde = { version = "1", features = ["derive"] }'
THISERROR = 'thiserror = "2"'
CRATES = {
    "plain": ("", lambda n: fields(n, "")),
    "debug": ("", lambda n: fields(n, "#[derive(Debug)]")),
    "dlpack": (CORE, ours),
    "serde": (SERDE, lambda n: fields(n, "#[derive(serde::Serialize)]")),
    "thiserror": (THISERROR, error),
}
COMMANDS = {
    "check": ["check"],
    "build": ["build"],
    "release": ["build", "--release"],
}
PEERS = ["serde", "thiserror"]


def write(work, types):
    for name, (dependency, make) in CRATES.items():
        crate = work / name
        (crate / "src").mkdir(parents=True, exist_ok=True)
        (crate / "Cargo.toml").write_text(
            f'[package]\nname = "types-{name}"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n{dependency}\n'
        )
        (crate / "src/lib.rs").write_text("".join(make(n) for n in range(types)))
    members = ", ".join(f'"{name}"' for name in CRATES)
    (work / "Cargo.toml").write_text(f'[workspace]\nresolver = "3"\nmembers = [{members}]\n')


def cargo(work, words, target="target"):
    environment = dict(os.environ, CARGO_INCREMENTAL="0", CARGO_TARGET_DIR=str(work / target))
    # What an outer cargo or a wrapper would add is not what is measured.
    for name in ["RUSTC_WRAPPER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"]:
        environment.pop(name, None)
    done = subprocess.run(["cargo", *words, "--quiet"], cwd=work, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cargo {' '.join(words)} failed:\n{done.stderr}")


def spent(action):
    """Seconds of the processor, and seconds on the clock."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    action()
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, end - start


def rebuild(work, name, command):
    (work / name / "src/lib.rs").touch()
    return spent(lambda: cargo(work, [*command, "-p", f"types-{name}"]))


def measure(work, command, rounds):
    """Of each crate, the processor seconds of every round and the median seconds on the clock."""
    for name in CRATES:
        rebuild(work, name, command)
    processor = {name: [] for name in CRATES}
    clock = {name: [] for name in CRATES}
    names = list(CRATES)
    for round in range(rounds):
        # Another one goes first each time.
        for name in names[round % len(names) :] + names[: round % len(names)]:
            used, waited = rebuild(work, name, command)
            processor[name].append(used)
            clock[name].append(waited)
    return processor, {name: statistics.median(times) for name, times in clock.items()}


def ratio(times, others):
    return statistics.median(time / other for time, other in zip(times, others))


def trees(work):
    print("\ndependencies and types from nothing, cargo build, seconds of processor / on the clock")
    for name in ["dlpack", *PEERS]:
        shutil.rmtree(work / "tree", ignore_errors=True)
        used, waited = spent(lambda: cargo(work, ["build", "-p", f"types-{name}"], target="tree"))
        print(f"{name:10} {used:6.2f} / {waited:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--types", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--work", type=Path, default=CACHE / "dlpack-benches" / "compile-time")
    options = parser.parse_args()

    write(options.work, options.types)
    print(f"the crates are in {options.work}")
    print(f"{options.types} types, {options.rounds} rounds, median seconds")
    print(f"{'command':8} {'derive':10} {'processor':>9} {'clock':>7} {'to plain':>9} {'to serde':>9} {'to thiserror':>13}")
    for command in options.commands:
        processor, clock = measure(options.work, COMMANDS[command], options.rounds)
        for name in CRATES:
            ratios = [ratio(processor[name], processor[other]) for other in ["plain", *PEERS]]
            print(
                f"{command:8} {name:10} {statistics.median(processor[name]):9.3f} {clock[name]:7.3f} "
                f"{ratios[0]:9.2f} {ratios[1]:9.2f} {ratios[2]:13.2f}",
                flush=True,
            )
    if options.trees:
        trees(options.work)


if __name__ == "__main__":
    main()
