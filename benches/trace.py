#!/usr/bin/env python3
"""The source files that one call executes, for each way to declare a tensor, for a copy and for a view.

    cargo xtask bench trace
    python3 benches/trace.py --files

gdb steps through one call in a build without optimisations, after a few calls that initialise what is initialised
once. `files` is the number of our source files with a line that runs, `returns` the number of times that the call
comes back to a file that it has left, and `functions` the number of functions. Needs gdb, and NumPy for the view.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# gdb executes this file too, with its own Python, and does not set `__file__`'s folder as a place to import from.
ROOT = Path(__file__).resolve().parent.parent
CRATES = ("dlpack-core", "dlpack-pyo3", "dlpack-derive")
# Calls before the one that is traced.
WARM_UP = 3
LIMIT = 50_000
# The largest numbers of files and returns.
GOALS = {"export": (20, 40), "copy": (30, 110), "view": (18, None)}


def trace_call(options):
    """Steps through one call, in gdb. Writes the file and function of each step."""
    import gdb

    for setting in ("pagination off", "confirm off", "breakpoint pending on", "step-mode on"):
        gdb.execute(f"set {setting}")
    start = gdb.Breakpoint(options["start"])
    start.ignore_count = WARM_UP
    gdb.execute("run", to_string=True)
    start.enabled = False
    # The stack grows downwards: the call has returned once less of it is in use than by its caller.
    caller = int(gdb.newest_frame().older().read_register("sp"))
    steps = []
    while int(gdb.newest_frame().read_register("sp")) < caller:
        frame = gdb.newest_frame()
        table = frame.find_sal().symtab
        if table is not None and table.filename.endswith(".rs"):
            steps.append((table.fullname(), frame.name()))
            step = "step"
        else:
            # CPython and libc call none of our functions here. The function that catches panics does, and has no lines.
            step = "stepi" if "rust_try" in (frame.name() or "") else "finish"
        gdb.execute(step, to_string=True)
        if len(steps) > LIMIT:
            raise gdb.GdbError(f"the call does not end within {LIMIT} steps")
    Path(options["result"]).write_text(json.dumps(steps))
    gdb.execute("kill")


def line_of(path, text):
    """The location of the only line with this text, for a breakpoint."""
    lines = (ROOT / path).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{path}:{number}"


def steps_of(module, start, program):
    """The steps of one call in a program, which makes at least one more call than `WARM_UP`."""
    with tempfile.TemporaryDirectory() as folder:
        result = f"{folder}/steps"
        options = json.dumps({"start": start, "result": result})
        words = ["gdb", "-batch", "-x", __file__, "--args", sys.executable, "-c", program]
        env = os.environ | {"DLPACK_TRACE": options, "PYTHONPATH": str(module)}
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not Path(result).exists():
            sys.exit(f"trace: gdb failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return json.loads(Path(result).read_text())


def summary(steps):
    """The files in the order in which the call enters them, the number of returns, and the number of functions."""
    files, functions, returns, last = [], set(), 0, None
    for path, function in steps:
        if not any(Path(path).is_relative_to(ROOT / crate) for crate in CRATES):
            continue
        functions.add(function)
        if path != last:
            returns += path in files
            files += [] if path in files else [path]
            last = path
    return [str(Path(path).relative_to(ROOT)) for path in files], returns, len(functions)


def flows():
    """Name, goal, first line, and a program for each call."""
    sys.path.append(str(ROOT / "benches/python"))
    from exports import PRODUCERS, SHAPE

    begin = line_of("dlpack-pyo3/src/export/method.rs", "dlpack_of::<DRAFT>(")
    calls = f"for _ in range({WARM_UP + 1}):"
    make = f"import bench_ours as ours; made = ours.{{}}({SHAPE}){{}}\n{calls} made.__dlpack__(max_version=(1, 1){{}})"
    for name, where in PRODUCERS.items():
        if where is not None and where[0] == "bench_ours":
            attribute = "".join(f".{word}" for word in where[2:])
            yield name.removeprefix("ours, "), "export", begin, make.format(where[1], attribute, "")
    yield "frozen, copy=True", "copy", begin, make.format("Frozen3", "", ", copy=True")
    array = f"import bench_ours as ours, numpy; array = numpy.zeros({SHAPE}, numpy.float32)\n{calls} ours.rank_3(array)"
    yield "View<f32, 3> of a NumPy array", "view", "bench_ours::takes::__pyfunction_rank_3", array


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", action="store_true", help="the files of each call too")
    parser.add_argument("--only", default="", help="only the calls whose names contain this")
    options = parser.parse_args()
    if shutil.which("gdb") is None:
        print("NOT MEASURED: gdb is missing; Debian and Ubuntu have a package of that name")
        return
    sys.path.append(str(ROOT / "benches/python"))
    from build import build_unoptimised

    module = build_unoptimised()
    print(f"{'':32} files  returns  functions")
    missed = []
    for name, goal, start, program in flows():
        if options.only not in name:
            continue
        files, returns, functions = summary(steps_of(module, start, program))
        print(f"{name:32} {len(files):5} {returns:8} {functions:10}", flush=True)
        if options.files:
            print("  " + "\n  ".join(files))
        most_files, most_returns = GOALS[goal]
        if len(files) > most_files or (most_returns is not None and returns > most_returns):
            missed.append(f"{name}: at most {most_files} files" + (f" and {most_returns} returns" if most_returns else ""))
    for line in missed:
        print(f"MISSED: {line}")


if "DLPACK_TRACE" in os.environ:
    trace_call(json.loads(os.environ["DLPACK_TRACE"]))
elif __name__ == "__main__":
    main()
