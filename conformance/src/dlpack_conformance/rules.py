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
    """Advice that an array does not follow. `pytest -W error::dlpack_conformance.rules.Advice` makes it a failure."""


def judge(report: Report, rule: str, known: bool = False) -> None:
    """Fails if the rule is violated, warns if advice is not followed, skips if the rule does not apply."""
    findings = [finding for finding in report.findings if finding.rule == rule]
    if not findings:
        pytest.skip("the rule does not apply to this object, or an earlier rule is violated")
    for finding in findings:
        said = f"{rule}: {RULES[rule][1]}\n{report.name}: {finding.seen}"
        if finding.level == "fault" or (known and finding.level == "note"):
            pytest.fail(said, pytrace=False)
        if finding.level == "note":
            warnings.warn(Advice(said), stacklevel=2)


class Conformance:
    """The base class of a test class. It needs a fixture `producer` of scope `class` or wider."""

    #: Rules with known violations, and the reasons. Their tests must fail; remove a rule when it is fixed.
    known: Mapping[str, str] = {}
    #: Whether the C exchange table is also called with foreign objects, which may crash a table with missing checks.
    hostile = False

    @pytest.fixture(scope="class")
    def dlpack_report(self, producer: object) -> Report:
        """The report on this producer."""
        return check_producer(producer, hostile=self.hostile)

    @pytest.mark.parametrize("rule", RULES)
    def test_rule(self, rule: str, dlpack_report: Report, request: pytest.FixtureRequest) -> None:
        """One rule, one producer."""
        known = self.known.get(rule)
        if known is not None:
            request.applymarker(pytest.mark.xfail(reason=known, strict=True))
        judge(dlpack_report, rule, known is not None)
