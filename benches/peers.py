#!/usr/bin/env python3
"""Every capability compared with all libraries that have it, and how the cost grows with the work.

    cargo xtask bench peers            # builds all, measures all; writes benches/peers.json, and the guide's page and plots
    python3 benches/peers.py --quick   # a test run of a few minutes; writes nothing without --out
    python3 benches/peers.py --only export call --processes 3 --out some.json

`python/sweeps.py` says what is measured; `python/turns.py` how calls take turns. Each process measures everything; a number
is the median over the processes. Bytes are counted, so once is enough. `classes.py` builds the classes. What is missing here
is named at the end, with the reason. A Python without the GIL, in which the sweeps over threads are done once more, is named by
--free-threaded; it needs NumPy, and nanobind if that shall take part.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python")]

import classes
import run
from build import CRATES, build
from sweeps import MEMORY, SWEEPS, Sweep

RESULTS = HERE / "peers.json"
CLASSES = [2, 10, 20]
BUILDS = {
    "class-seconds": Sweep("CPU time to build the classes of a module", "classes", CLASSES, None, "s"),
    "class-bytes": Sweep("bytes of the library with the classes of a module", "classes", CLASSES, None, "bytes"),
}
ALL = SWEEPS | MEMORY | BUILDS


def progress(*words):
    print(*words, file=sys.stderr, flush=True)


def about():
    """The machine, the date, and the versions."""

    def ask(*words):
        done = subprocess.run(words, capture_output=True, text=True, cwd=HERE)
        return done.stdout.strip() if done.returncode == 0 else "?"

    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M) if os.path.exists("/proc/cpuinfo") else None
    versions = {"Python": platform.python_version(), "rustc": ask("rustc", "--version").split()[1]}
    for package in ("numpy", "nanobind", "jax", "torch"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    for crate in CRATES:
        manifest = (HERE / f"python/peers/{crate}/Cargo.lock").read_text()
        name = "numpy" if crate == "rust-numpy" else crate
        versions[crate] = re.search(rf'name = "{name}"\nversion = "(.*)"', manifest)[1]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": ask("git", "describe", "--always", "--dirty"),
        "machine": f"{cpu[1] if cpu else platform.processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": versions,
    }


def middle(processes):
    """One list of (work, numbers by column), the medians of several processes."""
    return [
        (some[0][0], {column: statistics.median(one[column] for _, one in some) for column in some[0][1]})
        for some in zip(*processes)
    ]


def row(name, points, title=None):
    """The output of a sweep. Each number is rounded to its precision."""
    sweep = ALL[name]
    columns = dict.fromkeys(column for _, numbers in points for column in numbers)
    columns = sorted(columns, key=lambda column: column != "ours")
    short = lambda number: None if number is None else float(f"{number:.4g}")
    return {
        "title": title or sweep.title,
        "axis": sweep.axis,
        "unit": sweep.unit,
        "work": [work for work, _ in points],
        "columns": {column: [short(numbers.get(column)) for _, numbers in points] for column in columns},
    }


def timed(folders, only, words):
    results = []
    for number in range(words.processes):
        progress(f"process {number + 1} of {words.processes} ..")
        points = 2 if words.quick else 1
        results.append(json.loads(run.child(folders, "sweeps", only=only, rounds=words.rounds, points=points)))
    times = [result["times"] for result in results]
    return {name: row(name, middle([some[name] for some in times])) for name in times[0]}, results[0]["missing"]


def counted(folders, only):
    found = json.loads(run.child(folders, "memory", env={"PYTHONMALLOC": "malloc"}))
    return {name: row(name, points) for name, points in found["times"].items() if name in only}


def built(words):
    progress("building classes ..")
    seconds, sizes = classes.grow(CLASSES[:1] if words.quick else CLASSES, 1 if words.quick else 3)
    return {"class-seconds": row("class-seconds", seconds), "class-bytes": row("class-bytes", sizes)}


def without_gil(python, words):
    """The sweeps over threads, by a run of this script in that Python."""
    threads = [name for name in words.only if ALL[name].axis == "threads"]
    if not threads:
        return {}, {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        again = [python, __file__, "--only", *threads, "--out", out, "--rounds", str(words.rounds)]
        again += ["--processes", str(words.processes), *(["--quick"] if words.quick else [])]
        # A module that is not declared to work without the GIL would enable it for all.
        env = os.environ | {"PYTHON_GIL": "0"}
        # The packages of this Python.
        env.pop("PYTHONPATH", None)
        if subprocess.run(again, check=False, env=env).returncode:
            # All other results are kept.
            return {}, {"threads without the GIL": f"the run in {python} failed"}
        found = json.loads(out.read_text())
    version = found["about"]["versions"]["Python"]
    rows = {f"{name}-free": some | {"title": f"{some['title']}, without the GIL ({version})"} for name, some in found["sweeps"].items()}
    return rows, {f"{what}, without the GIL": why for what, why in found["missing"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ALL, default=list(ALL), metavar="SWEEP", help=", ".join(ALL))
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="one process, few rounds, every second amount of work")
    parser.add_argument("--free-threaded", metavar="PYTHON", default=os.environ.get("FREE_THREADED"))
    parser.add_argument("--out", type=Path, help=f"where to; without --only and --quick {RESULTS.relative_to(HERE.parent)}")
    words = parser.parse_args()
    if words.quick:
        words.processes, words.rounds = 1, 5
    whole = not words.quick and words.only == list(ALL)

    progress("building the modules ..")
    folders, missing = build(["thin"])
    calls = [name for name in words.only if name in SWEEPS]
    sweeps, reasons = timed(folders["thin"], calls, words) if calls else ({}, {})
    missing |= reasons
    if sys.platform == "linux" and not MEMORY.keys().isdisjoint(words.only):
        sweeps |= counted(folders["thin"], words.only)
    if not BUILDS.keys().isdisjoint(words.only):
        sweeps |= built(words)
    # Without a GIL, this is the run that `without_gil` has started.
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if has_gil and words.free_threaded:
        rows, reasons = without_gil(words.free_threaded, words)
        sweeps |= rows
        missing |= reasons
    elif has_gil:
        missing["threads without the GIL"] = "--free-threaded names no Python"

    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(some)}" for name, some in sweeps.items())
    text = f'{{\n "about": {json.dumps(about())},\n "missing": {json.dumps(missing)},\n "sweeps": {{\n{lines}\n }}\n}}\n'
    out = words.out or (RESULTS if whole else None)
    if out:
        out.write_text(text)
    if out == RESULTS:
        subprocess.run([sys.executable, HERE.parent / "guide/pictures.py"], check=True)
    for name, some in sweeps.items():
        run.table(
            f"{name}: {some['title']}, {some['unit']}",
            [some["axis"], *map(str, some["work"])],
            [[column, *("-" if number is None else f"{number:g}" for number in numbers)] for column, numbers in some["columns"].items()],
        )
    for what, reason in missing.items():
        print(f"NOT MEASURED {what}: {reason}")


if __name__ == "__main__":
    main()
