"""Each rule as a test of its own. Needs pytest.

    class TestZeros(Conformance):
        @pytest.fixture(scope="class", params=["float32", "int8"])
        def producer(self, request):
            return mylib.zeros((2, 3), dtype=request.param)

`TestZeros::test_rule[float32-CPY-01]` is then a test, and so is every other rule for each of the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import pytest

from .check import check_producer
from .report import RULES, Report


class Advice(UserWarning):
    """A rule that an array may break, at a price. `pytest -W error::dlpack_conformance.rules.Advice` makes it a failure."""


def judge(report: Report, rule: str, known: bool = False) -> None:
    """Fails where a rule was broken, warns where advice was not followed, skips what the object gave no occasion for."""
    findings = [finding for finding in report.findings if finding.rule == rule]
    if not findings:
        pytest.skip("this object gives no occasion for it, or breaks a rule that comes before")
    for finding in findings:
        said = f"{rule}: {RULES[rule][1]}\n{report.name}: {finding.seen}"
        if finding.level == "fault" or (known and finding.level == "note"):
            pytest.fail(said, pytrace=False)
        if finding.level == "note":
            warnings.warn(Advice(said), stacklevel=2)


class Conformance:
    """What a class of tests inherits. It needs a fixture `producer` of scope `class` or wider."""

    #: The rules that are known to be broken, and why: such a test has to fail until somebody mends what it tests.
    known: Mapping[str, str] = {}
    #: Whether the C exchange table also meets objects that are not its own, which a careless one does not survive.
    hostile = False

    @pytest.fixture(scope="class")
    def dlpack_report(self, producer: object) -> Report:
        """How this producer keeps the rules."""
        return check_producer(producer, hostile=self.hostile)

    @pytest.mark.parametrize("rule", RULES)
    def test_rule(self, rule: str, dlpack_report: Report, request: pytest.FixtureRequest) -> None:
        """One rule, one producer."""
        known = self.known.get(rule)
        if known is not None:
            request.applymarker(pytest.mark.xfail(reason=known, strict=True))
        judge(dlpack_report, rule, known is not None)
