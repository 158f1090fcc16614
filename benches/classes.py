#!/usr/bin/env python3
"""The cost of 100 Python classes, alone, with our methods and with dlpark's: compile time and library size.

    python3 benches/classes.py
    python3 benches/classes.py --classes 20 --rounds 1 --commands check

Writes three crates of frozen classes over a `Vec<f32>` and a `[usize; 2]`: the floor is the classes alone, with
PyO3's `#[new]`. crates.py says how they are measured, with cargo's default profiles. The size is that of the
library of `cargo build --release` after `strip`. The classes are those of class_sources.py; `peers.py` builds those of all peers.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import crates
from class_sources import KINDS, OLDER, OTHERS, nanobind_source, sources
from crates import measure, ratio

sys.path.append(str(crates.ROOT / "benches/python"))
from build import nanobind


def size(work, name):
    """The size of the library of the last `cargo build --release`, stripped."""
    folder = work / "target" / "release"
    library = next(path for path in folder.glob(f"libimages_{name.replace('-', '_')}.*") if path.suffix in (".so", ".dylib"))
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(library, place)
        subprocess.run(["strip", copy], check=True)
        return Path(copy).stat().st_size


# So few that they show the fixed cost, compared with many that show the cost of each class.
FEW = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", nargs="+", choices=crates.COMMANDS, default=list(crates.COMMANDS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--work", type=Path, default=crates.CACHE / "classes")
    options = parser.parse_args()

    crates.write(options.work, sources(options.classes))
    print(f"the crates are in {options.work}")
    print(f"{options.classes} classes, {options.rounds} rounds, median seconds of processor and on the clock")
    print(f"{'command':8} {'classes':8} {'processor':>9} {'clock':>7} {'to alone':>9}")
    for command in options.commands:
        processor, clock = measure(options.work, options.kinds, command, options.rounds)
        for kind, times in processor.items():
            to_alone = f"{ratio(times, processor['alone']):9.2f}" if "alone" in processor else ""
            print(f"{command:8} {kind:8} {statistics.median(times):9.2f} {clock[kind]:7.2f} {to_alone}", flush=True)
    if "release" in options.commands:
        sizes = {kind: size(options.work, kind) for kind in options.kinds}
        few = options.work / "few"
        crates.write(few, sources(FEW))
        for kind in options.kinds:
            crates.rebuild(few, kind, "release")
        small = {kind: size(few, kind) for kind in options.kinds}
        print("stripped library, bytes: in all, a class, and once for any number of classes; then what of these alone has not")
        costs = {kind: cost(small[kind], sizes[kind], options.classes) for kind in options.kinds}
        for kind, (each, once) in costs.items():
            more = [f"{mine - plain:9.0f}" for mine, plain in zip((each, once), costs["alone"])] if "alone" in costs else []
            print(f"{'size':8} {kind:8} {sizes[kind]:9} {each:9.0f} {once:9.0f} {' '.join(more)}")


def grow(counts, rounds, work=crates.CACHE / "classes-of-all"):
    """For each number of classes: the CPU seconds, and the bytes, of a release build of each kind."""
    seconds, sizes = [], []
    for count in counts:
        used, bytes_of = {}, {}
        for name, kinds in [("newer", KINDS | OTHERS), ("older", OLDER)]:
            crates.write(work / name, sources(count, kinds))
            processor, _ = measure(work / name, kinds, "release", rounds)
            used |= {kind: statistics.median(times) for kind, times in processor.items()}
            bytes_of |= {kind: size(work / name, kind) for kind in kinds}
        if found := nanobind():
            used["nanobind"], bytes_of["nanobind"] = in_cpp(*found, work, count, rounds)
        seconds.append((count, used))
        sizes.append((count, bytes_of))
    return seconds, sizes


def in_cpp(words, library, work, count, rounds):
    """CPU seconds and bytes for nanobind's classes; nanobind's own source is compiled before."""
    source, base, made = work / "images.cpp", work / "nanobind.o", work / "images.so"
    source.write_text(nanobind_source(count))
    subprocess.run([*words, "-c", library, "-o", base], check=True)
    compile_all = lambda: subprocess.run([*words, base, source, "-o", made], check=True)
    times = [crates.spent(compile_all)[0] for _ in range(rounds)]
    subprocess.run(["strip", made], check=True)
    return statistics.median(times), made.stat().st_size


def cost(small, large, classes):
    """Bytes of one more class, and of a library without classes, from those of `FEW` and of all classes."""
    each = (large - small) / (classes - FEW)
    return each, small - FEW * each


if __name__ == "__main__":
    main()
