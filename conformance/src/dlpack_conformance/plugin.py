"""`pytest --dlpack-producer mylib:make_array`: a test for each rule, in addition to the collected tests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pytest

from ._find import producer
from .check import check_producer
from .report import RULES, Report
from .rules import judge


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dlpack", "conformance of DLPack producers")
    group.addoption(
        "--dlpack-producer",
        metavar="MODULE:EXPRESSION",
        action="append",
        default=[],
        help="an object with __dlpack__, or a function that makes one, such as mylib:make_array or numpy:arange(3)",
    )
    group.addoption(
        "--dlpack-hostile",
        action="store_true",
        help="also call C exchange tables with foreign objects, which may crash a table with missing checks",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    for name in session.config.getoption("--dlpack-producer"):
        items.extend(Producer.from_parent(session, name=name, nodeid=f"dlpack[{name}]").collect())


class Producer(pytest.Collector):
    """One object, created and checked when its first test runs."""

    @cached_property
    def report(self) -> Report:
        return check_producer(producer(self.name), hostile=self.config.getoption("--dlpack-hostile"))

    def collect(self) -> Iterator[Rule]:
        return (Rule.from_parent(self, name=rule) for rule in RULES)


class Rule(pytest.Item):
    """One rule; its name is the rule's."""

    def runtest(self) -> None:
        assert isinstance(self.parent, Producer)
        judge(self.parent.report, self.name)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.nodeid, None, self.nodeid
