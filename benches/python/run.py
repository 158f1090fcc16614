#!/usr/bin/env python3
"""`__dlpack__`, `np.from_dlpack` and the C exchange table: our classes beside NumPy, other crates, nanobind and C.
And functions that take arrays, beside rust-numpy's and nanobind's (`takes.py`).

    cargo xtask bench python                                # in an environment that has what is needed
    python3 benches/python/run.py                           # the same, in an environment of your own
    python3 benches/python/run.py --builds thin --processes 3 --only call table
    python3 benches/python/run.py --instructions-only

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
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import takes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# (cargo profile, features of our crate)
BUILDS = {"thin": ("thin", []), "release": ("release", []), "abi3": ("thin", ["abi3"])}
CRATES = {
    "dlpark": "peer_dlpark",
    "dlpack-rs": "peer_dlpack_rs",
    "pyo3-dlpack": "peer_pyo3_dlpack",
    "rust-numpy": "peer_rust_numpy",
}
SHAPE = (4, 5, 3)

MEASURES = {
    "call": "obj.__dlpack__(max_version=(1, 1))",
    "numpy": "np.from_dlpack(obj)",
    "tvm": "tvm_ffi.from_dlpack(obj)",
    "device": "obj.__dlpack_device__()",
    "table": "exchange table: owning tensor + its deleter",
    "borrow": "exchange table: borrowed tensor",
    "takes": "f(x): a call of a function that takes an array",
}
EXPORTS = [measure for measure in MEASURES if measure != "takes"]
# Our own class first, then what it is compared with.
PRODUCERS = {
    "ours, frozen": ("bench_ours", "Frozen"),
    "ours, with a borrow": ("bench_ours", "Mutable"),
    "ours, writable": ("bench_ours", "Writable"),
    "ours, SharedBuffer": ("bench_ours", "Shared"),
    "ours, owner": ("bench_ours", "Owned"),
    "ours, Layout": ("bench_ours", "Laid"),
    "numpy": None,
    "dlpark": ("peer_dlpark", "Image"),
    "dlpack-rs": ("peer_dlpack_rs", "Image"),
    "pyo3-dlpack": ("peer_pyo3_dlpack", "Image"),
    "nanobind": ("peer_nanobind", "Image"),
    "C, floor": ("bench_c", "Floor"),
    "C, minimal": ("bench_c", "Minimal"),
}
OURS = [name for name in PRODUCERS if name.startswith("ours")]


# --- Building


def target():
    folder = os.environ.get("CARGO_TARGET_DIR")
    return (ROOT / folder if folder else ROOT / "target") / "python-bench"


def run(words, **options):
    """Runs a command, and gives why it failed."""
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode == 0:
        return done.stdout, None
    lines = [line for line in done.stderr.splitlines() if re.search(r"\berror\b", line)] or done.stderr.splitlines()
    return None, f"`{shlex.join(map(str, words[:3]))} ..`: " + " / ".join(lines[:3])


def build_crate(folder, module, build, place):
    profile, features = BUILDS[build]
    words = ["cargo", "build", "--profile", profile, "--message-format=json-render-diagnostics"]
    if features and module == "bench_ours":
        words += ["--features", ",".join(features)]
    env = os.environ | {"CARGO_TARGET_DIR": str(target() / "cargo"), "PYO3_PYTHON": sys.executable}
    # Set by a `cargo xtask` that we run in; it means another package.
    env.pop("CARGO_MANIFEST_DIR", None)
    out, problem = run(words, cwd=folder, env=env)
    if problem:
        return problem
    for line in out.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == module:
            file = next(file for file in message["filenames"] if Path(file).suffix in (".so", ".dylib"))
            shutil.copy(file, place / f"{module}.so")
    return None


def build_c(place):
    include = sysconfig.get_path("include")
    c = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-DNDEBUG", "-fPIC", "-shared", f"-I{include}"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    _, problem = run([*c, "-O2", *flags, HERE / "c/bench_c.c", "-o", place / "bench_c.so"])
    if problem:
        sys.exit(f"run: {problem}")
    problems = {}
    if sys.platform == "linux":
        _, problem = run([*c, "-O2", "-fPIC", "-shared", HERE / "c/count_malloc.c", "-o", place / "count_malloc.so"])
        if problem:
            problems["counting allocations"] = problem
    spec = importlib.util.find_spec("nanobind")
    if spec is None:
        problems["nanobind"] = "no Python package `nanobind` in this environment"
        return problems
    nanobind = Path(spec.origin).parent
    made, source = place / "peer_nanobind.so", HERE / "peers/nanobind/image.cpp"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        cxx = shlex.split(os.environ.get("CXX", "c++"))
        words = [*cxx, "-std=c++17", "-O3", "-fvisibility=hidden", "-fno-strict-aliasing", *flags]
        words += [f"-I{nanobind}/include", f"-I{nanobind}/ext/robin_map/include"]
        words += [nanobind / "src/nb_combined.cpp", source, "-o", made]
        _, problem = run(words)
        if problem:
            problems["nanobind"] = problem
    return problems


def build(names):
    """Builds everything, and gives a folder to import from for each build, and what went wrong."""
    common = target() / f"c-{sys.implementation.cache_tag}"
    common.mkdir(parents=True, exist_ok=True)
    print("building C and C++ ..", flush=True)
    problems = build_c(common)
    folders = {}
    for name in names:
        place = target() / f"{name}-{sys.implementation.cache_tag}"
        place.mkdir(parents=True, exist_ok=True)
        print(f"building the crates, {name} ..", flush=True)
        problem = build_crate(HERE / "ours", "bench_ours", name, place)
        if problem:
            sys.exit(f"run: our own class does not build: {problem}")
        if name != "abi3":
            for crate, module in CRATES.items():
                problem = build_crate(HERE / "peers" / crate, module, name, place)
                if problem:
                    problems[f"{crate}, {name}"] = problem
        folders[name] = [str(place), str(common)]
    return folders, problems


# --- In a process of its own


def producers(folders):
    """An object of each kind, and why some are missing."""
    import numpy as np

    sys.path[:0] = folders
    expected = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    objects, missing = {}, {}
    for name, where in PRODUCERS.items():
        if where is None:
            objects[name] = expected.copy()
            continue
        module, attribute = where
        try:
            objects[name] = getattr(importlib.import_module(module), attribute)(*SHAPE[:2])
        except ImportError as error:
            if module != "bench_c" and module != "bench_ours":
                missing[name] = str(error)
                continue
            raise
    for name, made in objects.items():
        check(name, made, expected)
    return objects, missing


def check(name, made, expected):
    """All give the same numbers, in place, and let go of the object."""
    import bench_c
    import numpy as np

    before = sys.getrefcount(made)
    array = np.from_dlpack(made)
    assert array.dtype == np.float32 and array.shape == SHAPE, name
    assert np.array_equal(array, expected), name
    address = array.ctypes.data
    del array
    assert np.from_dlpack(made).ctypes.data == address, f"{name} copies"
    capsule = made.__dlpack__(max_version=(1, 1))
    assert '"dltensor_versioned"' in repr(capsule), f"{name}: {capsule}"
    del capsule
    assert tuple(made.__dlpack_device__()) == (1, 0), name
    if hasattr(type(made), "__dlpack_c_exchange_api__"):
        data, _, shape, strides, dtype = bench_c.look(made)
        assert (data, shape, strides, dtype) == (address, SHAPE, (15, 3, 1), (2, 32, 1)), name
    gc.collect()
    assert sys.getrefcount(made) == before, f"{name} is held still"


def loop(body, made, **names):
    """A function of its own for each producer, so that what the interpreter learns about one is not about another."""
    source = f"def f(n):\n    start = clock()\n    for _ in repeat(None, n):\n        {body}\n    return clock() - start"
    from itertools import repeat

    space = {"clock": time.thread_time_ns, "repeat": repeat, "obj": made, **names}
    # A local variable is what the caller of such a method usually has.
    source = source.replace("f(n)", f"f(n, obj=obj{''.join(f', {name}={name}' for name in names)})")
    exec(source, space)
    return space["f"]


def measures(objects, only):
    """For each measure a function for each producer that takes part, and `None` for the empty loop."""
    import bench_c
    import numpy as np

    result = {}
    for measure in only:
        runs = {}
        if measure in ("call", "numpy", "tvm", "device"):
            extra = {}
            body = MEASURES[measure]
            if measure == "numpy":
                body, extra = "from_dlpack(obj)", {"from_dlpack": np.from_dlpack}
            if measure == "tvm":
                try:
                    import tvm_ffi
                except ImportError:
                    continue
                body, extra = "from_dlpack(obj)", {"from_dlpack": tvm_ffi.from_dlpack}
            runs[None] = loop("pass", None)
            for name, made in objects.items():
                if measure == "tvm":
                    try:
                        extra["from_dlpack"](made)
                    except (BufferError, TypeError, RuntimeError):
                        continue
                runs[name] = loop(body, made, **extra)
        else:
            function = {"table": bench_c.run_table, "borrow": bench_c.run_borrow}[measure]
            runs[None] = lambda n, f=function, o=bench_c.Nothing(*SHAPE[:2]): f(o, n)
            for name, made in objects.items():
                if hasattr(type(made), "__dlpack_c_exchange_api__"):
                    try:
                        if function(made, 1) is not None:
                            runs[name] = lambda n, f=function, o=made: f(o, n)
                    except BufferError:
                        # Read-only data cannot be lent without saying so.
                        continue
        result[measure] = runs
    return result


def child_times(folders, only, rounds, calls):
    objects, missing = producers(folders)
    result = {}
    gc.disable()
    for measure, runs in measures(objects, only).items():
        turns = calls if measure in ("call", "numpy", "tvm", "device") else calls * 5
        for run_once in runs.values():
            run_once(turns)
        times = {name: [] for name in runs}
        for _ in range(rounds):
            for name in random.sample(list(runs), len(runs)):
                times[name].append(runs[name](turns) / turns)
        empty = statistics.median(times.pop(None))
        result[measure] = {name: statistics.median(some) - empty for name, some in times.items()}
    return {"times": result, "missing": missing}


def child_takes(folders, rounds):
    sys.path[:0] = folders
    return takes.measure(loop, rounds)


def child_allocations(folders, only, calls):
    """Allocations of one turn, if the counter is loaded."""
    counted = ctypes.CDLL(None).counted_calls
    counted.restype = ctypes.c_longlong
    objects, _ = producers(folders)
    result = {}
    gc.disable()
    for measure, runs in measures(objects, only).items():
        for name, run_once in runs.items():
            run_once(100)
            before = counted()
            run_once(calls)
            result.setdefault(measure, {})[name] = (counted() - before) / calls
        empty = result[measure].pop(None)
        result[measure] = {name: round(count - empty, 1) for name, count in result[measure].items()}
    return result


def child_instructions(folders, only):
    """Runs under callgrind: after each part a dump with its name."""
    objects, _ = producers(folders)
    import bench_c

    gc.disable()
    for measure, runs in measures(objects, only).items():
        for name, run_once in runs.items():
            run_once(200)
            for turns in (100, 1100):
                bench_c.dump("rest")
                run_once(turns)
                bench_c.dump(f"{measure}|{name}|{turns}")


# --- Around it


def child(build_folders, kind, env=None, prefix=(), **options):
    words = [*prefix, sys.executable, __file__, "--child", json.dumps({"kind": kind, "folders": build_folders} | options)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (env or {}))
    if done.returncode != 0:
        sys.exit(f"run: {kind} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def main_of_child(options):
    kind = options.pop("kind")
    functions = {"times": child_times, "takes": child_takes, "allocations": child_allocations}
    functions["instructions"] = child_instructions
    print(json.dumps(functions[kind](**options)))


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
    """The table of one build; gives its medians."""
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
    """What the project promises of its frozen class, and how much it is."""
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
    """The table of calls, and the ratios to each other; whether they are as we promise."""
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
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a ratio is above what is promised")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.child:
        return main_of_child(json.loads(words.child))
    if os.name != "posix":
        sys.exit("run: the helper in C is for Unix")
    for package in ("numpy", "tvm_ffi"):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is missing from {sys.prefix}")
    folders, problems = build(words.builds)
    exports = [measure for measure in words.only if measure in EXPORTS]

    kept = True
    if not words.instructions_only:
        # The builds take turns too: the machine may be busy for a minute.
        results, taken = ({name: [] for name in words.builds} for _ in range(2))
        for number in range(words.processes):
            for name in words.builds:
                print(f"process {number + 1} of {words.processes}, {name} ..", flush=True)
                text = child(folders[name], "times", only=exports, rounds=words.rounds, calls=words.calls)
                results[name].append(json.loads(text))
                if "takes" in words.only:
                    taken[name].append(json.loads(child(folders[name], "takes", rounds=words.rounds)))
        for name in words.builds:
            for producer, reason in results[name][0]["missing"].items():
                if name != "abi3" or producer not in CRATES:
                    problems.setdefault(f"{producer}, {name}", reason)
            medians = show(name, results[name], exports)
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
