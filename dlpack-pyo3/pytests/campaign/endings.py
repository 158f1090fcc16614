"""Repeats the tests of process exit, of forks among busy threads, and of threads.

Each process that a test starts appends a line to the file named by `DLPACK_PROCESSES`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import report

TESTS = Path(__file__).parent.parent / "tests"


def session(file, words, **env):
    """Runs tests; returns the lines of their processes, and the output of pytest if one failed, or the number of passed ones."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "processes")
        run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", TESTS, TESTS / file]
        env = {**os.environ, "DLPACK_PROCESSES": str(place), **env}
        ended = subprocess.run([*run, *words], capture_output=True, text=True, env=env)
        lines = place.read_text().splitlines() if place.exists() else []
    # Status 5: no test was selected.
    note = ended.stdout[-1500:] if ended.returncode not in (0, 5) else ""
    return [json.loads(line) for line in lines], note, ended.stdout


def exits(tally):
    while not tally.done:
        words = ["-k", "not fork"]
        if tally.planned < 100:
            # One kind of owner and one group of uses represent the others.
            words = ["-k", "not fork and (tensor] or views])"]
        processes, note, _ = session("test_exit.py", words, DLPACK_ROUNDS="3")
        fine = sum(fine for fine, _ in processes)
        tally.good(fine)
        if len(processes) > fine or note:
            tally.bad(note, max(len(processes) - fine, 1))
        if not processes:
            return


def forks(tally):
    words, tests = ["-k", "test_forks"], 24
    if tally.planned < 100:
        words, tests = ["-k", "test_forks and (tensor] or views])"], 4
    share = -(-tally.planned // tests)
    processes, note, _ = session("test_exit.py", words, DLPACK_FORKS=str(share))
    for fine, out in processes:
        bad = int(out) if out.strip().isdigit() else share
        tally.good(share - bad)
        if bad or not fine:
            tally.bad(note, bad)
    if note and not tally.wrong:
        tally.bad(note)


def threads(tally):
    """Each test runs for the same time."""
    seconds = tally.planned / 10
    _, note, text = session("test_threads.py", [], DLPACK_SECONDS=str(seconds))
    passed = re.search(r"(\d+) passed", text)
    tally.judge(note, round(int(passed[1]) * seconds) if passed else 0)


report.main(
    {
        "exits": (exits, 3_000, 26),
        "forks among busy threads": (forks, 2_000, 10),
        "seconds of threads": (threads, 100, 5),
    }
)
