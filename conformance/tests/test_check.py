"""The conformance kit: silent about what is right, and loud about each thing that is wrong."""

import sys

import numpy as np
import pytest

import broken
from broken import PLANTED, Good, good, read_only
from dlpack_conformance import check_producer
from dlpack_conformance.report import RULES


def breaches(report):
    return {finding.rule for finding in report.findings if finding.level != "ok"}


@pytest.mark.parametrize(
    "array",
    [good(), read_only(), good(values=np.float64(3)), good(values=np.arange(8)[::-2]), np.zeros((0, 3)).view(Good)],
    ids=["writable", "read-only", "scalar", "backwards", "empty"],
)
def test_a_good_producer_keeps_every_rule(array):
    report = check_producer(array)
    assert breaches(report) == set(), str(report)
    assert len(report.findings) > 35


# Destructors in Python cannot run while an exception is set, and CPython says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("rules", "kind", "make"), PLANTED, ids=[f"{kind.__name__}-{'-'.join(rules)}" for rules, kind, make in PLANTED]
)
def test_what_is_wrong_is_found_and_nothing_else(rules, kind, make):
    report = check_producer(make(kind))
    assert breaches(report) == set(rules), str(report)


def test_the_table_meets_a_foreign_object_only_when_told_to():
    array = good(broken.table(managed_tensor_from_py_object_no_sync=broken.another))
    assert "XAP-12" not in breaches(check_producer(array))
    assert "XAP-12" in breaches(check_producer(array, hostile=True))


def test_each_rule_has_a_control():
    planted = {rule for rules, _, _ in PLANTED for rule in rules}
    assert planted | {"XAP-12"} == set(RULES)


def test_the_object_is_left_as_it_was():
    array = good()
    before = sys.getrefcount(array)
    check_producer(array)
    assert sys.getrefcount(array) == before
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_is_no_producer_is_said_to_be_none():
    assert breaches(check_producer(5)) == {"CAP-27"}


def test_the_report_says_what_was_seen():
    report = check_producer(good(broken.FifthProcessor))
    assert "0 notes, 1 fault\n" in str(report)
    assert "__dlpack_device__() returned (1, 5)" in str(report)
    assert report.faults[0].level == "fault" and report.notes == []
    assert "CPY-01" not in str(report) and "CPY-01" in report.everything()


def test_what_is_said_about_numpy_is_true():
    array = np.arange(6.0)
    report = check_producer(array)
    told = {finding.rule: finding.seen for finding in report.findings if finding.level != "ok"}
    for stream in (1, -1):
        with pytest.raises((RuntimeError, ValueError)) as raised:
            array.__dlpack__(stream=stream)
    assert ("ERR-06" in told) == isinstance(raised.value, RuntimeError)
    assert ("LAY-11" in told) == (array.ctypes.data % 64 != 0)
    with pytest.raises((BufferError, ValueError)) as raised:
        array.__dlpack__(dl_device=(99, 0))
    assert ("DEV-06" in told) == (not isinstance(raised.value, BufferError))
    capsule = array.__dlpack__()
    assert ("LAY-02" in told) == (not broken.struct(capsule).dl_tensor.strides)
    assert set(told) <= {"DEV-06", "ERR-04", "ERR-06", "STC-12", "CPY-11", "CPY-14", "LAY-02", "LAY-11"}


def test_what_is_said_about_torch_is_true():
    torch = pytest.importorskip("torch")
    report = check_producer(torch.arange(6.0), hostile=True)
    told = {finding.rule: finding.seen for finding in report.findings if finding.level != "ok"}
    with pytest.raises(Exception) as raised:
        torch.arange(6.0).__dlpack__(stream=1)
    assert ("ERR-06" in told) == isinstance(raised.value, AssertionError)
    capsule = torch.arange(6.0).__dlpack__(max_version=(1, 0), copy=True)
    assert ("CPY-04" in told) == (broken.struct(capsule).flags & 2 == 0)
    assert set(told) <= {"ERR-04", "ERR-06", "CPY-04", "NEG-17", "XAP-12", "LAY-11", "CPY-14"}


def test_what_is_said_about_jax_is_true():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(6.0)
    told = {finding.rule: finding.seen for finding in check_producer(array).findings if finding.level != "ok"}
    versioned = "versioned" in repr(array.__dlpack__(max_version=(1, 0)))
    assert ("NEG-04" in told) == (not versioned)
    assert set(told) <= {"ERR-04", "ERR-06", "STC-12", "NEG-04", "NEG-05", "NEG-17", "CPY-07", "CPY-11", "LAY-11", "CPY-14", "FLG-04"}
