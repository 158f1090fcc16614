"""Fixtures: every test starts and ends with the same number of live owners."""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import capi
import dlpack_probe
import pytest

HERE = Path(__file__).parent
# A file in which each process that `script` starts records its exit status and output.
PROCESSES = os.environ.get("DLPACK_PROCESSES")
# A driver without a GPU, which `cargo xtask` builds. Core looks for a driver once in a process, when it first needs one.
SIMULATOR = os.environ.get("DLPACK_SIMULATOR")
if SIMULATOR:
    os.environ.setdefault("DLPACK_LIBCUDA", SIMULATOR)
    os.environ.setdefault("DLPACK_LIBAMDHIP64", SIMULATOR)
    # As many devices as any test names.
    ctypes.CDLL(SIMULATOR).sim_reset(8)


def pytest_configure(config):
    config.addinivalue_line("markers", "leaks: the test leaves owners alive on purpose")
    config.addinivalue_line("markers", "functions_keep: functions of the test refer to owners")


def pytest_collection_finish(session):
    """Excludes objects that exist before the first test from the collections of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_leaks(request):
    """Every owner that a test makes is dropped before the test ends."""
    gc.collect()
    before = dlpack_probe.alive()
    dlpack_probe.drops()
    yield
    gc.collect()
    # Owners of device memory wait for their consumers.
    dlpack_probe.collect_and_wait()
    marks = {mark.name for mark in request.node.iter_markers()}
    # A free-threaded Python 3.13 never frees a function, nor what it refers to.
    if "leaks" not in marks and not (capi.FREE_THREADED_313 and "functions_keep" in marks):
        # Fewer are allowed: a failed test before kept some in its traceback.
        assert dlpack_probe.alive() <= before, "owners are left behind"


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


@pytest.fixture
def memory_can_fail(whose):
    """Skips a test if the allocations of `whose`, "python" or "rust", cannot fail, or if Python itself crashes then."""
    pytest.importorskip("_testcapi")
    if whose == "python" and capi.python_crashes_without_memory():
        pytest.skip("this Python crashes if an allocation fails, also without us")


class Ended:
    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    def __repr__(self):
        return f"status {self.status}\n{self.out}\n{self.err}"

    def is_crash_of_python(self):
        """Whether CPython may have crashed in a thread that waits for the GIL, or attaches, when the interpreter has just ended.

        It then reads thread states that were freed, or finds none: a crash after `faulthandler` has ended, or one of its own messages.
        """
        lost = "Fatal Python error" in self.err and "gilstate" in self.err.lower()
        asserted = self.status == -signal.SIGABRT and "pystate.c" in self.err and "tstate" in self.err
        return lost or asserted or (self.status == -signal.SIGSEGV and not self.err)


@pytest.fixture
def script():
    """Runs Python code in a new interpreter: for code that crashes, or that is about interpreter exit.

    `attempts` is greater than 1 for code in which CPython itself crashes now and then, as another test shows without our code.
    """

    def run_once(code, timeout, env):
        path = os.pathsep.join([str(HERE), *sys.path])
        process = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": path, "DLPACK_SECONDS": "1", **env},
        )
        return Ended(process)

    def run(code, *, timeout=900, status=0, noisy=False, attempts=1, **env):
        ended = run_once(code, timeout, env)
        for _ in range(attempts - 1):
            if not ended.is_crash_of_python():
                break
            ended = run_once(code, timeout, env)
        if PROCESSES:
            fine = status in (None, ended.status) and (noisy or status is None or not ended.err)
            with open(PROCESSES, "a") as file:
                file.write(json.dumps([fine, ended.out]) + "\n")
        if status is not None:
            assert ended.status == status, ended
            assert noisy or not ended.err, ended
        return ended

    return run
