"""Short versions of the campaigns in the folder `campaign`; `cargo xtask faults` runs them in full."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import capi
import dlpack_probe as p
import pytest

HERE = Path(__file__).parent
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
# `endings.py` is tested elsewhere.
FILES = ["arguments", "consumers", "differential", "keepers", "memory", "panics", "records", "tensors", "threads", "trips", "waits", "walk"]


def missing(name):
    """What this interpreter lacks for a campaign."""
    if name == "memory" and not importlib.util.find_spec("_testcapi"):
        return "nothing makes Python's allocator fail"
    if name == "memory" and capi.python_crashes_without_memory():
        return "this Python crashes if an allocation fails, also without us"
    if name == "panics" and not hasattr(p, "hooks"):
        return "the hooks need more than the stable ABI"
    if name in ("memory", "panics") and not hasattr(os, "fork"):
        return "each attempt is a process"
    if name in ("differential", "records", "walk") and not importlib.util.find_spec("numpy"):
        return "there is no NumPy to compare with"
    if name == "waits" and "DLPACK_SIMULATOR" not in os.environ:
        return "there is no driver"
    if name in ("threads", "trips", "arguments") and not capi.GIL:
        return "references are not counted exactly"
    if name not in ("tensors", "arguments", "consumers", "differential", "keepers", "records", "walk") and SANITIZED:
        return "the sanitizer has memory and processes of its own"
    return None


@pytest.mark.parametrize("name", FILES)
def test_campaigns(name):
    """CAP-13, CAP-21, CAP-24, ERR-11, XAP-23, Own faults 3, 8, 19, 20: thousands of hostile, wrong, panicking and failing cases."""
    if missing(name):
        pytest.skip(missing(name))
    path = os.pathsep.join([str(HERE), *sys.path])
    ended = subprocess.run(
        [sys.executable, HERE.parent / "campaign" / f"{name}.py", "short"],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ended.returncode == 0, ended
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    results = [result for result in results if "count" in result]
    assert results
    for result in results:
        assert result["bad"] == 0 and result["count"] >= result["planned"] > 0, result


TALLY = """
import os, sys
os.environ.pop("DLPACK_CASES", None)
sys.argv = ["campaign", "short"]
sys.path.insert(0, {folder!r})
import report
report.main({{"nothing": (lambda tally: None, 100, 10), "some": (lambda tally: tally.good(9), 100, 10), "all": (lambda tally: tally.good(10), 100, 10)}})
"""


def test_a_campaign_with_less_to_do_than_planned_is_bad(script):
    """Own faults: a campaign that did less than planned fails, because it finds nothing."""
    ended = script(TALLY.format(folder=str(HERE.parent / "campaign")))
    results = [json.loads(line) for line in ended.out.splitlines()]
    bad = {result["campaign"]: result["bad"] for result in results if "count" in result}
    assert bad == {"nothing": 1, "some": 1, "all": 0}
    assert "only 9 of 10" in ended.out


WITHOUT_THE_GIL = """
import ctypes
# A function of a `CDLL` is called without the GIL.
ctypes.CDLL(None).Py_IncRef(ctypes.py_object(object()))
"""


@pytest.mark.skipif(not hasattr(sys, "gettotalrefcount"), reason="a release build of CPython does not notice")
def test_a_debug_build_notices_a_missing_gil(script):
    """CAP-13: so the campaigns of threads and round trips also run on a debug build."""
    assert script(WITHOUT_THE_GIL, status=None).status < 0
