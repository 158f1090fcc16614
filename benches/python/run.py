#!/usr/bin/env python3
"""`__dlpack__`, `np.from_dlpack` and the C exchange table: our classes compared with NumPy, other crates, nanobind and C.
And functions that take arrays, compared with rust-numpy's and nanobind's (`takes.py`).

    cargo xtask bench python                                # in an environment that has what is needed
    python3 benches/python/run.py                           # the same, in an environment of your own
    python3 benches/python/run.py --builds thin --processes 3 --only call table
    python3 benches/python/run.py --instructions-only
    cargo xtask bench declarations                          # only our declarations, beside each other and NumPy

Needs NumPy; with apache-tvm-ffi and nanobind there are more columns and rows. Whatever cannot be built or
imported is named at the end, with the reason. Linux or another Unix with a C compiler.

Every process measures every producer: in each round all take a turn, in a new order. A turn is a loop of a few
thousand calls, timed by the processor time of the thread; an empty loop is a producer like the others, and its
time is subtracted. A number is the median over the processes of the median over the rounds, in nanoseconds, and
[lowest..highest] are the processes' medians. Before anything is timed, all producers must give the same numbers
without a copy, and release the object.

Builds of our class and of the other crates: `thin` is thin LTO with one codegen unit, `release` is cargo's
default, `abi3` is thin for the stable ABI of Python 3.10 (ours only). C and C++ are compiled with -O2 and -O3.
"""

import argparse
import importlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import exports
import sweeps
import takes
from build import BUILDS, CRATES, build
from exports import PRODUCERS

MEASURES = exports.MEASURES | {"takes": "f(x): a call of a function that takes an array"}
# The jobs of a child process.
KINDS = {
    "times": exports.child_times,
    "allocations": exports.child_allocations,
    "instructions": exports.child_instructions,
    "takes": takes.child,
    "sweeps": sweeps.child,
    "memory": sweeps.child_memory,
}


def child(build_folders, kind, env=None, prefix=(), **options):
    words = [*prefix, sys.executable, __file__, "--child", json.dumps({"kind": kind, "folders": build_folders} | options)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (env or {}))
    if done.returncode != 0:
        sys.exit(f"run: {kind} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def main_of_child(options):
    print(json.dumps(KINDS[options.pop("kind")](**options)))


def instructions(folders, only):
    """The instructions of one turn, or why they were not counted."""
    if shutil.which("valgrind") is None:
        return None, "valgrind is missing; Debian and Ubuntu have a package of that name"
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/out"
        prefix = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}"]
        env = {"PYTHONHASHSEED": "0"}
        child(folders, "instructions", prefix=prefix, env=env, only=only)
        totals = {}
        for part in Path(folder).iterdir():
            text = part.read_text(errors="replace")
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
            if name and total and name[1].count("|") == 2:
                measure, producer, turns = name[1].split("|")
                totals.setdefault(measure, {}).setdefault(producer, {})[turns] = int(total[1])
    if not totals:
        return None, "the C helper was built without valgrind's headers"
    result = {}
    for measure in (measure for measure in only if measure in totals):
        some = totals[measure]
        per_turn = {name: (both["1100"] - both["100"]) / 1000 for name, both in some.items()}
        empty = per_turn.pop("None")
        result[measure] = {name: count - empty for name, count in per_turn.items()}
    return result, None


def declarations(folders, processes, rounds, calls):
    """The table of our declarations, compared with each other and with NumPy's own array; whether each is as fast as promised."""
    print("instructions ..", flush=True)
    counted, reason = instructions(folders, ["call"])
    if reason:
        print(f"NOT MEASURED instructions: {reason}")
    found = []
    for number in range(processes):
        print(f"process {number + 1} of {processes} ..", flush=True)
        found.append(json.loads(child(folders, "times", only=["call", "numpy"], rounds=rounds, calls=calls))["times"])
    names = [name for name in PRODUCERS if name in found[0]["call"] and (name.startswith("ours") or name == "numpy")]
    best = min(counted["call"][name] for name in names) if counted else None
    # Each process compares its own times, because a busy machine slows all of its turns.
    fastest = [min(times["call"][name] for name in names if name != "numpy") for times in found]
    rows, slow = [], []
    for name in names:
        call = statistics.median(times["call"][name] for times in found)
        to_fastest = statistics.median(times["call"][name] / low for times, low in zip(found, fastest))
        to_numpy = [statistics.median(times[m][name] / times[m]["numpy"] for times in found) for m in ("call", "numpy")]
        count = counted["call"][name] if counted else None
        rows.append([
            name,
            "-" if count is None else f"{count:.0f}",
            "-" if count is None else f"{count / best:.2f}",
            f"{call:.0f}",
            f"{to_fastest:.2f}",
            *(f"{ratio:.2f}" for ratio in to_numpy),
        ])  # fmt: skip
        if name != "numpy" and (to_fastest > 1.25 or to_numpy[0] > 1):
            slow.append(name)
    columns = ["", "instructions", "to the least", "ns", "to the fastest", "to NumPy", "np.from_dlpack, to NumPy"]
    table("`obj.__dlpack__(max_version=(1, 1))` by declaration", columns, rows)
    for name in slow:
        print(f"  MISSED: {name}: at most 1.25 of the fastest, and less than NumPy")
    return not slow


def middle(values):
    return statistics.median(values), min(values), max(values)


def cell(triple):
    return "-" if triple is None else f"{triple[0]:.1f} [{triple[1]:.1f}..{triple[2]:.1f}]"


def table(title, columns, rows):
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        print("  " + "  ".join(text.ljust(width) if i == 0 else text.rjust(width) for i, (text, width) in enumerate(zip(row, widths))))


def show(name, processes, only):
    """The table of one build; returns its medians."""
    medians = {}
    for measure in only:
        some = [process["times"][measure] for process in processes if measure in process["times"]]
        if some:
            medians[measure] = {producer: middle([one[producer] for one in some]) for producer in some[0]}
    known = [producer for producer in PRODUCERS if any(producer in some for some in medians.values())]
    rows = [[producer, *(cell(some.get(producer)) for some in medians.values())] for producer in known]
    table(f"{name}: nanoseconds, {len(processes)} processes", ["", *medians], rows)
    return medians


def ratios(name, medians):
    """The ratios that the project promises for its frozen class, and the measured ones."""
    lines = []

    def compare(measure, other, limit):
        ours = medians.get(measure, {}).get("ours, frozen")
        theirs = medians.get(measure, {}).get(other)
        if ours and theirs:
            lines.append((f"{MEASURES[measure]} / {other}", ours[0] / theirs[0], limit))

    compare("call", "numpy", 0.65)
    compare("call", "nanobind", 1.0)
    compare("numpy", "numpy", 1.0)
    compare("table", "C, minimal", 1.7)
    rows = [[text, f"{ratio:.2f}", f"{limit:.2f}", "" if ratio <= limit else "MISSED"] for text, ratio, limit in lines]
    table(f"{name}: the frozen class, as a ratio", ["", "found", "at most", ""], rows)
    return all(ratio <= limit for _, ratio, limit in lines)


def show_taken(name, processes):
    """The table of calls, and their ratios; whether these are as promised."""
    medians = {}
    for title, some in processes[0]["times"].items():
        medians[title] = {column: middle([one["times"][title][column] for one in processes]) for column in some}
    rows = [[title, *(cell(some.get(column)) for column in takes.COLUMNS)] for title, some in medians.items()]
    table(f"{name}: nanoseconds of f(x)", ["", *takes.COLUMNS], rows)
    others = [column for column in takes.COLUMNS if column != "ours"]

    def ratio(title, other):
        some = medians[title]
        return some["ours"][0] / some[other][0] if other in some else None

    def text(number):
        return "-" if number is None else f"{number:.2f}"

    rows = [[title, *(text(ratio(title, other)) for other in others)] for title in medians]
    table(f"{name}: ours, as a ratio", ["", *others], rows)
    broken = [row for row in takes.PROMISES if (ratio(*row[:2]) or 0) > row[2]]
    for title, other, limit in broken:
        print(f"  MISSED: {title}, at most {limit:.2f} of {other}")
    return not broken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", nargs="+", choices=BUILDS, default=list(BUILDS))
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="measures")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=2000, help="calls in a turn")
    parser.add_argument("--no-instructions", action="store_true", help="do not count them; it takes a minute")
    parser.add_argument("--instructions-only", action="store_true", help="count them, time nothing")
    parser.add_argument("--declarations", action="store_true", help="only the table of our declarations, thin LTO")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a ratio is above what is promised")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.child:
        return main_of_child(json.loads(words.child))
    if os.name != "posix":
        sys.exit("run: the helper in C is for Unix")
    for package in ("numpy", "tvm_ffi"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            print(f"NOT MEASURED {package}: {error}")
    if words.declarations:
        folders, _ = build(["thin"], peers=False)
        kept = declarations(folders["thin"], words.processes, words.rounds, words.calls)
        sys.exit(1 if words.strict and not kept else 0)
    folders, problems = build(words.builds)
    exported = [measure for measure in words.only if measure in exports.MEASURES]

    kept = True
    if not words.instructions_only:
        # The builds take turns, too, because the machine may be busy for a minute.
        results, taken = ({name: [] for name in words.builds} for _ in range(2))
        for number in range(words.processes):
            for name in words.builds:
                print(f"process {number + 1} of {words.processes}, {name} ..", flush=True)
                text = child(folders[name], "times", only=exported, rounds=words.rounds, calls=words.calls)
                results[name].append(json.loads(text))
                if "takes" in words.only:
                    taken[name].append(json.loads(child(folders[name], "takes", rounds=words.rounds)))
        for name in words.builds:
            for producer, reason in results[name][0]["missing"].items():
                if name != "abi3" or producer not in CRATES:
                    problems.setdefault(f"{producer}, {name}", reason)
            medians = show(name, results[name], exported)
            kept &= ratios(name, medians) or name == "abi3"
            if taken[name]:
                problems |= {f"{what}, {name}": why for what, why in taken[name][0]["missing"].items()}
                kept &= show_taken(name, taken[name]) or name == "abi3"

    name = words.builds[0]
    counted = [measure for measure in words.only if measure in ("call", "table")]
    counter = Path(folders[name][1]) / "count_malloc.so"
    if counted and counter.exists():
        preload = {"LD_PRELOAD": str(counter)}
        plain = json.loads(child(folders[name], "allocations", env=preload, only=counted, calls=1000))
        whole = json.loads(
            child(folders[name], "allocations", env=preload | {"PYTHONMALLOC": "malloc"}, only=counted, calls=1000)
        )
        rows = [
            [producer, *(f"{some[m][producer]:g}" if producer in some[m] else "-" for m in counted for some in (plain, whole))]
            for producer in PRODUCERS
            if producer in plain[counted[0]]
        ]
        columns = ["", *(text for m in counted for text in (f"{m}: malloc", "with Python's own"))]
        table(f"{name}: allocations of one export", columns, rows)
        for measure in counted:
            if plain[measure]["ours, frozen"] != 1:
                kept = False
                print(f"  MISSED: one allocation for {MEASURES[measure]}")

    if not words.no_instructions:
        wanted = [measure for measure in words.only if measure in ("call", "numpy", "table", "borrow")]
        for name in words.builds:
            found, reason = instructions(folders[name], wanted)
            if reason:
                problems["counting instructions"] = reason
                break
            rows = [
                [producer, *(f"{some[producer]:.0f}" if producer in some else "-" for some in found.values())]
                for producer in PRODUCERS
                if any(producer in some for some in found.values())
            ]
            table(f"{name}: instructions of one call", ["", *found], rows)

    print("\nMeasures:")
    for measure in words.only:
        print(f"  {measure:<8}{MEASURES[measure]}")
    for what, reason in problems.items():
        print(f"NOT MEASURED {what}: {reason}")
    sys.exit(1 if words.strict and not kept else 0)


if __name__ == "__main__":
    main()
