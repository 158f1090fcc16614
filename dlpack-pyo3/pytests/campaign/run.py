"""Plays all campaigns, two at a time, on each interpreter that it is given, and writes what came of them down as a table.

usage: python run.py [--scale short|full|long] [--only WORD] [--table FILE] --python INTERPRETER MODULE ..
  --scale    how many of each: seconds, what the project asks for, or five times that
  --only     campaigns whose file has the word in its name; `core` for those without Python
  --table    where to write the table
  --python   an interpreter, and the folder of our module for it
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
# Longest first: the others fill the gaps.
FILES = ["endings", "trips", "threads", "memory", "tensors", "panics", "arguments", "consumers"]
CASES = {"short": 10_000, "full": 2_000_000, "long": 10_000_000}
LIMIT = {"short": 300, "full": 3000, "long": 15_000}
TARGET = "x86_64-unknown-linux-gnu"
ADDRESS = {
    "RUSTFLAGS": "-Zsanitizer=address",
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
}
HEAD = """# Campaigns

Written by `cargo xtask faults`, which plays them: hostile producers, code that lies and panics, memory that is not there, threads,
forks and exits, by the million where that can be. What is bad is said below the table.

"""
TAIL = """
What a campaign does, and how it knows what is bad, stands in the first lines of its file under `dlpack-pyo3/pytests/campaign` and
`dlpack-core/tests/campaign`.

Not counted, because no line of ours is in it:

- A payload that panics again when it is dropped, thrown where PyO3 calls a user's function (or drops a user's object), ends the
  process. `panics.py` shows it with a function that does nothing else.
"""


def environment(**more):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    # Set by the `cargo run` that may have started us; they would hand our compiler to the other cargo.
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


def play(name, python, module, args):
    """A file of campaigns in a process of its own: the results, and one more if it dies."""
    version = output(python, "-c", "import platform; print(platform.python_implementation(), platform.python_version())")
    path = os.pathsep.join([module, str(HERE.parent / "tests")])
    command = [python, HERE / f"{name}.py", args.scale]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(PYTHONPATH=path))
        watch = threading.Timer(LIMIT[args.scale], process.kill)
        watch.start()

        def relay():
            for line in process.stderr:
                if line.startswith("  "):
                    # How far it is.
                    print(line, end="", flush=True)
                errors.write(line)

        relaying = threading.Thread(target=relay)
        relaying.start()
        found = lines_of(process.stdout.read())
        status = process.wait()
        relaying.join()
        watch.cancel()
        errors.seek(0)
        said = errors.read()[-400:]
    results = [line for line in found if "count" in line]
    if status:
        begun = next((line for line in reversed(found) if "begins" in line), {"campaign": name})
        note = f"ended with status {status}: {said}"
        results.append({"campaign": begun["campaign"], "count": 1, "bad": 1, "note": note, "seconds": 0})
    return [{**result, "on": version} for result in results]


def core(where, words, args, **env):
    """The campaigns without Python, which are tests of core."""
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder, "tally")
        env = environment(DLPACK_TALLY=str(tally), DLPACK_CASES=str(CASES[args.scale]), DLPACK_ON=where, **env)
        env.setdefault("DLPACK_SEED", str(time.time_ns() % 10**9))
        command = ["cargo", *words, "--quiet", "-p", "dlpack-core", "--test", "campaign"]
        ended = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT)
        results = lines_of(tally.read_text()) if tally.exists() else []
    if ended.returncode and not any(result["bad"] for result in results):
        note = (ended.stdout + ended.stderr)[-1500:]
        results.append({"campaign": "core", "on": where, "count": 0, "bad": 1, "note": note, "seconds": 0})
    return results


def jobs(args):
    """What to play, one function each."""
    found = []
    if args.only in "core":
        # Cargo builds one thing at a time anyway.
        target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")

        def both():
            plain = core("Rust", ["test"], args)
            if not output("cargo", "+nightly", "--version"):
                print("SKIPPED AddressSanitizer: no nightly toolchain here", flush=True)
                return plain
            words = ["+nightly", "test", "--target", TARGET]
            return plain + core("AddressSanitizer", words, args, **ADDRESS, CARGO_TARGET_DIR=str(Path(target, "asan")))

        found.append(both)
    for python, module in args.python:
        for name in FILES:
            if args.only in name:
                found.append(lambda name=name, python=python, module=module: play(name, python, module, args))
    return found


def table(results, args):
    """The table, as text."""
    rust = output("rustc", "--version")
    nightly = output("rustc", "+nightly", "--version")
    pythons = []
    for python, _ in args.python:
        version = output(python, "-c", "import platform, numpy; print(platform.python_version(), 'with numpy', numpy.__version__)")
        pythons.append(f"CPython {version or output(python, '--version')}")
    facts = [time.strftime("%Y-%m-%d"), output("git", "rev-parse", "--short", "HEAD"), rust, nightly and f"sanitizers: {nightly}"]
    facts = "; ".join(filter(None, [*facts, *pythons, f"scale: {args.scale}"]))
    text = HEAD + facts + "\n\n| campaign | on | count | bad | seconds |\n|---|---|---|---|---|\n"
    for result in results:
        text += "| {campaign} | {on} | {count:,} | {bad:,} | {seconds:,} |\n".format(**result)
    notes = ["- {campaign}, {on}: {note}".format(**result) for result in results if result["bad"]]
    if notes:
        text += "\nWhat was bad:\n\n" + "\n".join(" ".join(note.split())[:1500] for note in notes) + "\n"
    return text + TAIL


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=CASES, default="full")
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    parser.add_argument("--python", nargs=2, action="append", default=[])
    args = parser.parse_args()
    results = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        playing = [pool.submit(job) for job in jobs(args)]
        for job in concurrent.futures.as_completed(playing):
            for result in job.result():
                results.append(result)
                print("{campaign}, {on}: {count:,}, {bad:,} bad, {seconds} s".format(**result), flush=True)
    results.sort(key=lambda result: (result["campaign"], result["on"]))
    text = table(results, args)
    print("\n" + text)
    if args.table and not args.only:
        Path(args.table).write_text(text)
    sys.exit(1 if any(result["bad"] for result in results) else 0)


if __name__ == "__main__":
    main()
