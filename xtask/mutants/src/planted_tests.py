"""A plugin of pytest: runs chosen tests in forked processes, and records which places each test reaches.

With PLANTED_SERVER this process collects all tests and runs none. Each line that it reads is a request in JSON; a child process then
runs the tests of that request with the bug of that number. The answer is two lines: the number of the process, and the status
with which it ended. So Python starts, and the tests are collected, only once.

PLANTED_TESTS names a file that lists the tests to run, in that order.

With PLANTED_REACHED, the name of a file, it appends a line `T name` where a test begins and `D seconds outcome name` where it
ends. The switch of planted bugs, and that in programs which the test starts, appends a line for each place between them.
"""

import ctypes
import json
import os
import resource
import time

import pytest

CHOSEN = os.environ.pop("PLANTED_TESTS", None)
REACHED = os.environ.get("PLANTED_REACHED")
if os.environ.pop("PLANTED_SERVER", None):
    REQUESTS, ANSWERS = os.fdopen(os.dup(0)), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
else:
    REQUESTS = None


def choose(items, names):
    order = {name: at for at, name in enumerate(names)}
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_collection_modifyitems(items):
    if CHOSEN:
        with open(CHOSEN) as file:
            choose(items, file.read().splitlines())


def switch():
    import dlpack_probe

    return ctypes.CDLL(dlpack_probe.__file__)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if not REQUESTS:
        return
    for line in REQUESTS:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            begin(session, request)
            # The loop of pytest follows.
            return
        os.setpgid(child, child)
        os.write(ANSWERS, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(ANSWERS, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def begin(session, request):
    """Makes a forked process the one that runs the tests of a request."""
    os.setpgid(0, 0)
    os.close(ANSWERS)
    os.close(REQUESTS.fileno())
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if request["processor_seconds"]:
        resource.setrlimit(resource.RLIMIT_CPU, [request["processor_seconds"]] * 2)
    if not REACHED:
        # The variable is for programs that the tests start.
        os.environ["PLANTED"] = str(request["number"])
        switch().planted_choose(request["number"])
    if request["file"]:
        session.items[:] = [item for item in session.items if str(item.path) == request["file"]]
    else:
        choose(session.items, request["tests"])


def append(line):
    with open(REACHED, "a") as file:
        file.write(line + "\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if not REACHED:
        return (yield)
    switch().planted_forget()
    append(f"T {item.nodeid}")
    item.config.planted = "passed"
    start = time.perf_counter()
    result = yield
    append(f"D {time.perf_counter() - start:.3f} {item.config.planted} {item.nodeid}")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.outcome != "passed":
        item.config.planted = report.outcome
    return report
