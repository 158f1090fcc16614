"""Runs all campaigns, one more at a time than there are CPUs, and writes the results as a table.

usage: python run.py [--scale short|full|long] [--play WORD] --python INTERPRETER MODULE .. [--debug INTERPRETER MODULE] [--address INTERPRETER MODULE LIBRARY]
  --scale    how many cases of each: a few seconds, the numbers of the project's requirements, or five times those
  --play     only campaigns with the word in their names: a file of this folder, or `core` and `races`, which need no Python
  --python   an interpreter, and the folder of our module for it
  --debug    a debug build of CPython and its module, on which the threads and the round trips are run, too
  --address  an interpreter, our module built with AddressSanitizer, and the sanitizer's library, with which the records are run, too

The table is spec/campaign.md. Partial or short runs do not change it.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
# How many campaigns each file has. The longest run first, so that the others fill the gaps.
FILES = {"endings": 3, "trips": 1, "threads": 1, "differential": 1, "waits": 1, "memory": 1, "keepers": 1, "walk": 1}
FILES |= {"tensors": 2, "panics": 1, "arguments": 1, "consumers": 2, "records": 2}
# A debug build notices a reference count that is changed without the GIL. It is slower, but any of these cases shows it.
DEBUG = {"trips": {"full": 1_000_000, "long": 5_000_000}, "threads": {"full": 1_000_000, "long": 5_000_000}}
# The address of each field comes from a layout, so a wrong one reads outside of an allocation.
ADDRESS = ["records"]
# The interpreter never frees all of its own memory, so leaks are not reported.
ADDRESS_OPTIONS = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096"
# How many tests `races` has.
RACES = 2
CORE = {"crafted tensors", "lying implementations"}
CASES = {"short": 10_000, "full": 2_000_000, "long": 10_000_000}
LIMIT = {"short": 300, "full": 3000, "long": 15_000}
# The row of a campaign that did not finish.
NOTHING = {"count": 0, "planned": 1, "bad": 1, "seconds": 0}
TARGET = "x86_64-unknown-linux-gnu"
HEAD = """# Campaigns

Written by `cargo xtask faults`, which runs them: hostile producers, implementations that lie or panic, failing allocations, threads,
forks, exits, and comparisons with NumPy, millions of cases where possible. Failures are listed below the
table, and campaigns that ran fewer cases than planned.

"""
TAIL = """
The first lines of each campaign say what it does and how it detects a failure. They are in `dlpack-pyo3/pytests/campaign` and
`dlpack-core/tests/campaign`.

Not counted, because our code is not involved:

- A payload that panics again when it is dropped, thrown where PyO3 calls a user's function (or drops a user's object), ends the
  process. `panics.py` shows it with a function that does nothing else.
- If the failing allocation is that of an exception's trace, CPython raises `SystemError: error return without exception
  set` in its place. `memory.py` shows it with `chr(-1)`.
"""


def environment(**more):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    # Set by the `cargo run` that may have started this script; they would make the other cargo use this compiler.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"]:
        env.pop(name, None)
    return env


def output(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=ROOT).stdout.strip()
    except OSError:
        return ""


def lines_of(text):
    """The lines of JSON in an output."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def version_of(python):
    words = "platform.python_implementation(), platform.python_version() + 'd' * hasattr(sys, 'gettotalrefcount')"
    return output(python, "-c", f"import platform, sys; print({words})")


def play(name, python, module, args, on=None, **more):
    """Runs a file of campaigns in its own process: the results, and one more if it crashes or its results are not the expected ones."""
    path = os.pathsep.join([module, str(HERE.parent / "tests")])
    command, env = [python, HERE / f"{name}.py", args.scale], environment(PYTHONPATH=path, **more)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    watch = threading.Timer(LIMIT[args.scale], process.kill)
    watch.start()
    errors = []

    def relay():
        for line in process.stderr:
            errors.append(line)
            if line.startswith("  "):
                # The progress.
                print(line, end="", flush=True)

    relaying = threading.Thread(target=relay)
    relaying.start()
    found = lines_of(process.stdout.read())
    status = process.wait()
    relaying.join()
    watch.cancel()
    results = [line for line in found if "count" in line]
    if status:
        begun = [line for line in found if "begins" in line] or [{"campaign": name}]
        note = f"ended with status {status}: {''.join(errors[-9:])}"
        results.append({**NOTHING, "campaign": begun[-1]["campaign"], "note": note})
    elif len(results) != FILES[name]:
        note = f"{len(results)} campaigns where {FILES[name]} are planned"
        results.append({**NOTHING, "campaign": name, "note": note})
    return [{**result, "on": on or version_of(python)} for result in results]


def core(where, words, args, **env):
    """The campaigns without Python, which are tests of core."""
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder, "tally")
        env = environment(DLPACK_TALLY=str(tally), DLPACK_CASES=str(CASES[args.scale]), DLPACK_ON=where, **env)
        env.setdefault("DLPACK_SEED", str(time.time_ns() % 10**9))
        command = ["cargo", *words, "--quiet", "-p", "dlpack-core", "--test", "campaign"]
        ended = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT)
        results = lines_of(tally.read_text()) if tally.exists() else []
    for result in results:
        if result["count"] < result["planned"] and not result["bad"]:
            result |= {"bad": 1, "note": f"only {result['count']} of {result['planned']} that were planned"}
    if ended.returncode and not any(result["bad"] for result in results):
        note = (ended.stdout + ended.stderr)[-1500:]
        results.append({**NOTHING, "campaign": "core", "on": where, "note": note})
    missing = CORE - {result["campaign"] for result in results}
    if missing and not ended.returncode:
        results += [{**NOTHING, "campaign": name, "on": where, "note": "it was not played"} for name in missing]
    return results


def sanitizer(name, **env):
    """The arguments of a build with a sanitizer, and its environment."""
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    env |= {"CARGO_TARGET_DIR": str(Path(target, f"{name}-sanitizer")), "RUSTFLAGS": f"-Zsanitizer={name}"}
    return ["+nightly", "test", "--target", TARGET], env


def races(args):
    """Operations of threads on tensors, under ThreadSanitizer, which must report a planted race.

    It needs a standard library that it watches too: without, it reports what that does.
    """
    begun, (words, env) = time.monotonic(), sanitizer("thread", DLPACK_CASES=str(CASES[args.scale] // 100))
    command = ["cargo", *words, "-Zbuild-std", "--quiet", "-p", "dlpack-core", "--test", "races"]

    def run(*words, **more):
        words = [*command, *words]
        return subprocess.run(words, capture_output=True, text=True, env=environment(**env, **more), cwd=ROOT)

    # The planted race runs alone: next to many other accesses, ThreadSanitizer may forget one half of a race.
    ended, planted = run(), run("planted", DLPACK_PLANT="1")
    note = (ended.stdout + ended.stderr)[-1500:] if ended.returncode else ""
    if "data race" not in planted.stdout + planted.stderr:
        note += "; a race that was planted is not reported"
    seconds = round(time.monotonic() - begun)
    # The count is that of the first test's six threads; of the others only success is known.
    passed = re.search(r"(\d+) passed", ended.stdout)
    planned = 6 * CASES[args.scale] // 100
    count = planned if passed and int(passed[1]) >= RACES else 0
    if count < planned:
        note = note or f"only {count} of {planned} that were planned"
    row = {"campaign": "races", "on": "ThreadSanitizer", "count": count, "planned": planned, "bad": int(bool(note))}
    return [{**row, "note": note, "seconds": seconds}]


def rust(args):
    """All campaigns without Python, one after the other, because Cargo locks its build folder."""
    results = core("Rust", ["test"], args) if args.play in "core" else []
    installed = output("rustup", "component", "list", "--installed", "--toolchain", "nightly")
    if not output("cargo", "+nightly", "--version"):
        print("SKIPPED the sanitizers: no nightly toolchain here", flush=True)
        return results
    if args.play in "core":
        words, env = sanitizer("address", ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1")
        results += core("AddressSanitizer", words, args, **env)
    if args.play in "races" and "rust-src" in installed:
        results += races(args)
    elif args.play in "races":
        print("SKIPPED ThreadSanitizer: `rustup component add rust-src --toolchain nightly` adds what it needs", flush=True)
    return results


def jobs(args):
    """The campaigns to run, one function each."""
    found = []
    if args.play in "core" or args.play in "races":
        found.append(lambda: rust(args))
    seen = set()
    for python, module in args.python:
        if version_of(python) in seen:
            continue
        seen.add(version_of(python))
        for name in FILES:
            if args.play in name:
                found.append(lambda name=name, python=python, module=module: play(name, python, module, args))
    for python, module in args.debug:
        for name, cases in DEBUG.items():
            more = {"DLPACK_CASES": str(cases[args.scale])} if args.scale in cases else {}
            if args.play in name:
                found.append(lambda name=name, python=python, module=module, more=more: play(name, python, module, args, **more))
    for python, module, library in args.address:
        more = {"LD_PRELOAD": library, "ASAN_OPTIONS": ADDRESS_OPTIONS, "PYTHONMALLOC": "malloc"}
        more["on"] = f"{version_of(python)}, AddressSanitizer"
        for name in ADDRESS:
            if args.play in name:
                found.append(lambda name=name, python=python, module=module, more=more: play(name, python, module, args, **more))
    return found


def table(results, args):
    """The table, as text."""
    stable = output("rustc", "--version")
    nightly = output("rustc", "+nightly", "--version")
    pythons = []
    for python, _ in args.python + args.debug:
        numpy = output(python, "-c", "import numpy; print('with numpy', numpy.__version__)")
        pythons.append(f"{version_of(python)} {numpy}".strip())
    facts = [time.strftime("%Y-%m-%d"), output("git", "rev-parse", "--short", "HEAD"), stable, nightly and f"sanitizers: {nightly}"]
    facts = "; ".join(filter(None, [*facts, *pythons, f"scale: {args.scale}"]))
    text = HEAD + facts + "\n\n| campaign | on | count | plan | bad | seconds |\n|---|---|---|---|---|---|\n"
    for result in results:
        text += "| {campaign} | {on} | {count:,} | {planned:,} | {bad:,} | {seconds:,} |\n".format(**result)
    notes = ["- {campaign}, {on}: {note}".format(**result) for result in results if result["bad"]]
    if notes:
        text += "\nWhat was bad:\n\n" + "\n".join(" ".join(note.split())[:1500] for note in notes) + "\n"
    return text + TAIL


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=CASES, default="full")
    parser.add_argument("--play", default="", metavar="WORD")
    parser.add_argument("--python", nargs=2, action="append", default=[], metavar=("INTERPRETER", "MODULE"))
    parser.add_argument("--debug", nargs=2, action="append", default=[], metavar=("INTERPRETER", "MODULE"))
    parser.add_argument("--address", nargs=3, action="append", default=[], metavar=("INTERPRETER", "MODULE", "LIBRARY"))
    args = parser.parse_args()
    results = []
    # The processes of `endings` wait for more than half of the time.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        playing = [pool.submit(job) for job in jobs(args)]
        for job in concurrent.futures.as_completed(playing):
            for result in job.result():
                results.append(result)
                print("{campaign}, {on}: {count:,} of {planned:,}, {bad:,} bad, {seconds} s".format(**result), flush=True)
                if result["bad"]:
                    # The seed plays the same cases again.
                    print(f"  bad: {result['note']}; DLPACK_SEED={result.get('seed')}", flush=True)
    results.sort(key=lambda result: (result["campaign"], result["on"]))
    if not results:
        sys.exit(f"nothing is played by `{args.play}`")
    text = table(results, args)
    print("\n" + text)
    if args.scale != "short" and not args.play:
        Path(ROOT, "spec/campaign.md").write_text(text)
    sys.exit(1 if any(result["bad"] for result in results) else 0)


if __name__ == "__main__":
    main()
