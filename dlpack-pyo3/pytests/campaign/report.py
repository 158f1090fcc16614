"""Common code of the campaigns: counts cases, reports progress, and keeps the first failure.

A file of this folder is started as `python FILE SCALE [NAME]`, and prints two lines of JSON for each of its campaigns: one when it
begins, so that a process which dies has a name, and one with what came of it.
"""

import json
import os
import signal
import sys
import time
import traceback

# No driver: with one, core would ask it about the memory that a hostile producer claims to be on a device.
os.environ["DLPACK_LIBCUDA"] = os.environ["DLPACK_LIBAMDHIP64"] = "none"
# The backtraces of thousands of panics are not needed.
os.environ["RUST_BACKTRACE"] = "0"
SCALES = {"short": None, "full": 1, "long": 5}
SEED = int(os.environ.get("DLPACK_SEED", time.time_ns() % 10**9))


class Tally:
    def __init__(self, campaign, planned):
        self.campaign, self.planned = campaign, planned
        self.count = self.wrong = 0
        self.note = ""
        self.start = self.last = time.monotonic()

    def good(self, count=1):
        self.count += count
        if time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            share = 100 * self.count // max(self.planned, 1)
            print(f"  {self.campaign}: {self.count} ({share} %), {self.wrong} bad", file=sys.stderr, flush=True)

    def bad(self, note, count=1):
        self.count += count
        self.wrong += count
        self.note = self.note or note

    def judge(self, note, count=1):
        """Counts one more case, which is bad if there is a note."""
        self.bad(note, count) if note else self.good(count)

    def compare_with_plan(self):
        """A campaign that did fewer cases than planned is bad, even if all were good."""
        if self.count < self.planned:
            self.wrong += 1
            self.note = self.note or f"only {self.count} of {self.planned} that were planned"

    @property
    def done(self):
        return self.count >= self.planned


def say(**what):
    print(json.dumps(what), flush=True)


def main(campaigns):
    """`campaigns`: by name, the function, and its size in full and in short."""
    scale, only = sys.argv[1], sys.argv[2:]
    for name, (act, full, short) in campaigns.items():
        if only and name not in only:
            continue
        planned = short if scale == "short" else full * SCALES[scale]
        planned = int(os.environ.get("DLPACK_CASES", planned))
        say(campaign=name, begins=planned)
        tally = Tally(name, planned)
        try:
            act(tally)
        except BaseException:
            tally.bad(traceback.format_exc())
        tally.compare_with_plan()
        seconds = round(time.monotonic() - tally.start)
        say(campaign=name, count=tally.count, planned=tally.planned, bad=tally.wrong, note=tally.note, seconds=seconds, seed=SEED)


def apart(act, limit=60):
    """Runs `act` in a child process; returns what is wrong, from the child's own report or its exit status, and the result."""
    ours, its = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        # The output of a runtime that aborts is not needed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(limit)
        try:
            answer = act()
        except BaseException as error:
            answer = (f"{type(error).__name__}: {error}"[:500], None)
        os.write(its, json.dumps(answer).encode())
        os._exit(0)
    os.close(its)
    with open(ours, "rb") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return f"ended by {signal.Signals(-status).name}", None
    if status or not text:
        return f"ended with status {status}", None
    return json.loads(text)
