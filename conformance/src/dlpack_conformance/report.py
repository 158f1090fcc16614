"""The rules that `check_producer` checks, and the report on one object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["ok", "note", "fault"]

#: Each rule with the level of a violation. A `fault` breaks the standard or an existing library, or exports wrong
#: data. A `note` is advice that the producer does not follow, or a limit that users should know.
#: The numbers are those of the project's list of requirements, `spec/ids.tsv`; KIT-1 is the kit's own.
RULES: dict[str, tuple[Level, str]] = {
    "CAP-27": ("fault", "`__dlpack__` and `__dlpack_device__` are methods of the type"),
    "DEV-01": ("fault", "`__dlpack_device__()` returns a tuple of two integers"),
    "DEV-03": ("fault", "host memory has device number 0"),
    "DEV-19": ("note", "DLPack 1.3 defines the device type"),
    "DEV-02": ("fault", "the tensor is on the device that `__dlpack_device__()` names"),
    "DEV-05": ("fault", "`dl_device` with the object's own device changes nothing"),
    "DEV-06": ("fault", "a `dl_device` that cannot be served raises BufferError"),
    "DEV-07": ("note", "`dl_device=(1, 0)` returns host memory"),
    "NEG-01": ("fault", "stream, max_version, dl_device and copy are keywords, may be None, and only keywords"),
    "NEG-02": ("note", "without `max_version` a legacy tensor is returned"),
    "NEG-04": ("note", "with `max_version=(1, 0)` a versioned tensor is returned"),
    "NEG-05": ("note", "with a later `max_version` a versioned tensor is returned"),
    "NEG-06": ("fault", "with a `max_version` below 1.0 a legacy tensor is returned, or BufferError is raised"),
    "NEG-07": ("fault", "a versioned tensor is returned only if `max_version` allows it"),
    "NEG-08": ("fault", "the tensor has major version 1"),
    "NEG-17": ("note", "a `max_version` that is not a pair of integers is refused"),
    "NEG-18": ("note", "an unknown keyword raises TypeError"),
    "CAP-01": ("fault", "the capsule has one of the two names of the standard"),
    "CAP-04": ("fault", "the capsule has a destructor"),
    "CAP-05": ("fault", "the destructor does not release a consumed tensor"),
    "CAP-08": ("fault", "the deleter is not NULL"),
    "CAP-12": ("fault", "each call returns a new tensor"),
    "CAP-13": ("fault", "the deleter runs on another thread, without the GIL"),
    "CAP-17": ("fault", "the destructor preserves a pending exception, and raises none"),
    "CAP-26": ("fault", "an unconsumed capsule releases its references"),
    "CAP-28": ("note", "the deleter releases its reference at once"),
    "CPY-01": ("fault", "`copy=True` copies"),
    "CPY-02": ("fault", "`copy=False` does not copy"),
    "CPY-04": ("fault", "a copy is flagged IS_COPIED"),
    "CPY-05": ("fault", "only a copy is flagged IS_COPIED"),
    "CPY-06": ("fault", "two copies share no memory"),
    "CPY-07": ("note", "a copy is writable"),
    "CPY-09": ("note", "`copy=True` copies for a legacy consumer too"),
    "CPY-10": ("note", "`copy=True` is supported"),
    "CPY-11": ("note", "a `copy` that is neither None nor a bool raises TypeError"),
    "CPY-14": ("note", "a copy is aligned to 64 bytes, as JAX requires"),
    "STC-05": ("fault", "`stream=-1`, no order, is supported"),
    "STC-06": ("fault", "stream 0 is refused for CUDA"),
    "STC-07": ("fault", "a stream below -1 is refused"),
    "STC-12": ("fault", "a stream is refused for memory without streams"),
    "ERR-04": ("note", "a bad stream raises ValueError"),
    "ERR-06": ("fault", "no RuntimeError, AssertionError or panic is raised"),
    "DTY-01": ("fault", "DLPack 1.3 defines the data type"),
    "DTY-02": ("fault", "the width is valid for the code of the data type"),
    "DTY-07": ("fault", "the data type has one lane or more"),
    "FLG-01": ("note", "no unknown flag is set"),
    "FLG-04": ("fault", "read-only memory is not exported as a legacy tensor, which has no flag for it"),
    "FLG-07": ("fault", "only types below 8 bits are flagged IS_SUBBYTE_TYPE_PADDED"),
    "LAY-02": ("fault", "`strides` is not NULL"),
    "LAY-05": ("note", "`data` is NULL in a tensor without elements"),
    "LAY-06": ("fault", "`data` is not NULL in a tensor with elements"),
    "LAY-08": ("fault", "`byte_offset` is 0 for memory with addresses; four libraries ignore it"),
    "LAY-11": ("note", "the data is aligned to 64 bytes; else JAX copies and TensorFlow may abort"),
    "LAY-12": ("note", "the data is aligned to its elements"),
    "LAY-16": ("note", "memory that several elements share is read-only"),
    "LAY-18": ("note", "a tensor without elements has row-major strides"),
    "LAY-19": ("fault", "rank and extents are not negative, and their product fits an address"),
    "LAY-20": ("note", "the rank is 64 at most"),
    "XAP-02": ("fault", "`__dlpack_c_exchange_api__` is a capsule of the type, named `dlpack_exchange_api`"),
    "XAP-04": ("note", "`__c_dlpack_exchange_api__` leads to the same table"),
    "XAP-05": ("fault", "the capsule of the table has no destructor"),
    "XAP-06": ("fault", "the table is of major version 1"),
    "XAP-07": ("fault", "the table has the four functions"),
    "XAP-12": ("fault", "an object of another type raises TypeError"),
    "XAP-14": ("fault", "the table exports what `__dlpack__` exports"),
    "XAP-15": ("fault", "the table's tensor has its own deleter and releases its references"),
    "XAP-17": ("fault", "an imported tensor becomes an object, or ownership stays with the caller"),
    "XAP-19": ("fault", "the borrowed tensor has the fields that `__dlpack__` exports"),
    "XAP-20": ("note", "read-only memory is not exported as a borrowed tensor, which has no flag"),
    "XAP-22": ("fault", "the allocator returns the requested tensor, or calls SetError"),
    "XAP-24": ("note", "the current stream of the CPU is NULL"),
    "KIT-1": ("fault", "shape, data type and elements are the same for every request"),
}


@dataclass(frozen=True)
class Finding:
    """An observation: its level, its rule, and what was seen."""

    level: Level
    rule: str
    seen: str

    def __str__(self) -> str:
        return f"{self.level:<6}{self.rule:<8}{self.seen}"


@dataclass
class Report:
    """The findings on one object. `print(report)` shows notes and faults, `report.everything()` all findings."""

    name: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """Violations of the standard, and wrong data."""
        return [finding for finding in self.findings if finding.level == "fault"]

    @property
    def notes(self) -> list[Finding]:
        """Advice that the producer does not follow, and limits."""
        return [finding for finding in self.findings if finding.level == "note"]

    def expect(self, rule: str, kept: bool, seen: str) -> bool:
        """Records whether a rule was kept: the first success and the first violation."""
        level = "ok" if kept else RULES[rule][0]
        if all((other.rule, other.level) != (rule, level) for other in self.findings):
            self.findings.append(Finding(level, rule, seen))
        return kept

    def note(self, rule: str, seen: str) -> None:
        """Records, once, an observation that violates no rule."""
        if all((other.rule, other.level) != (rule, "note") for other in self.findings):
            self.findings.append(Finding("note", rule, seen))

    def everything(self) -> str:
        """All findings, each with its rule."""
        return "\n".join((self._head(), *self._lines(self.findings)))

    def __str__(self) -> str:
        return "\n".join((self._head(), *self._lines(self.faults + self.notes)))

    def _head(self) -> str:
        broken = {finding.rule for finding in self.findings if finding.level != "ok"}
        kept = len({finding.rule for finding in self.findings} - broken)
        return f"{self.name}: {_counted(kept, 'rule')} kept, {_counted(len(self.notes), 'note')}, {_counted(len(self.faults), 'fault')}"

    def _lines(self, findings: list[Finding]) -> Iterator[str]:
        for finding in findings:
            yield f"  {finding.level:<6}{finding.rule:<7}{RULES[finding.rule][1]}"
            yield f"  {'':13}{finding.seen}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
