#!/usr/bin/env python3
"""The compile time of 200 derived types: ours compared with serde and thiserror, in one run.

    python3 benches/compile_time.py
    python3 benches/compile_time.py --types 50 --rounds 3

Writes one crate for each of the derives, and one whose types derive nothing: the floor. Each has the same
number of types, of a few usual forms; crates.py says how they are measured. The numbers are medians over the rounds.

With --trees it also builds the dependencies of each from nothing, once.
"""

import argparse
import shutil
import statistics
from pathlib import Path

import crates
from crates import cargo, measure, ratio, spent


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
    """The same types without our attributes."""
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
    """Typical error types: structs with numbers, an enum of causes, a wrapper."""
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


CORE = crates.dependency("dlpack-core")
SERDE = 'serde = { version = "1", features = ["derive"] }'
THISERROR = 'thiserror = "2"'
CRATES = {
    "plain": ("", lambda n: fields(n, "")),
    "debug": ("", lambda n: fields(n, "#[derive(Debug)]")),
    "dlpack": (CORE, ours),
    "serde": (SERDE, lambda n: fields(n, "#[derive(serde::Serialize)]")),
    "thiserror": (THISERROR, error),
}
PEERS = ["serde", "thiserror"]


def sources(types):
    return {
        name: (f"[dependencies]\n{dependency}", "".join(make(n) for n in range(types)))
        for name, (dependency, make) in CRATES.items()
    }


def trees(work):
    print("\ndependencies and types from nothing, cargo build, seconds of processor / on the clock")
    for name in ["dlpack", *PEERS]:
        shutil.rmtree(work / "tree", ignore_errors=True)
        used, waited = spent(lambda: cargo(work, ["build", "-p", f"measured-{name}"], target="tree"))
        print(f"{name:10} {used:6.2f} / {waited:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--types", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--commands", nargs="+", choices=crates.COMMANDS, default=list(crates.COMMANDS))
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--work", type=Path, default=crates.CACHE / "compile-time")
    options = parser.parse_args()

    crates.write(options.work, sources(options.types))
    print(f"the crates are in {options.work}")
    print(f"{options.types} types, {options.rounds} rounds, median seconds")
    print(f"{'command':8} {'derive':10} {'processor':>9} {'clock':>7} {'to plain':>9} {'to serde':>9} {'to thiserror':>13}")
    for command in options.commands:
        processor, clock = measure(options.work, CRATES, command, options.rounds)
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
