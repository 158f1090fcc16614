"""A plugin of pytest: chooses the tests that PLANTED_TESTS lists, in that order, and records which places each reaches.

With PLANTED_REACHED, the name of a file, it appends a line `T name` where a test begins and `D seconds outcome name` where it
ends. The switch of planted bugs, and that in programs which the test starts, appends a line for each place between them.
"""

import ctypes
import os
import time

import pytest

CHOSEN = os.environ.get("PLANTED_TESTS")
REACHED = os.environ.get("PLANTED_REACHED")


def pytest_collection_modifyitems(items):
    if CHOSEN:
        with open(CHOSEN) as file:
            order = {name: at for at, name in enumerate(file.read().splitlines())}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def append(line):
    with open(REACHED, "a") as file:
        file.write(line + "\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if not REACHED:
        return (yield)
    import dlpack_probe

    ctypes.CDLL(dlpack_probe.__file__).planted_forget()
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
