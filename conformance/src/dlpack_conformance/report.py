"""The rules that `check_producer` knows, and the report of how an object kept them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["ok", "note", "fault"]

#: What each rule asks, and what a breach is. A `fault` breaks the standard, or a library that exists, or leaves wrong
#: data in somebody's hands. A `note` is advice not followed, or a limit that users should hear of.
#: The numbers are those of the project's list of requirements, `spec/ids.tsv`; KIT-1 is the kit's own.
RULES: dict[str, tuple[Level, str]] = {
    "CAP-27": ("fault", "`__dlpack__` and `__dlpack_device__` are methods of the type"),
    "DEV-01": ("fault", "`__dlpack_device__()` gives a tuple of two integers"),
    "DEV-03": ("fault", "memory of the host has device number 0"),
    "DEV-19": ("note", "the device type is one that DLPack 1.3 knows"),
    "DEV-02": ("fault", "the tensor is on the device that `__dlpack_device__()` names"),
    "DEV-05": ("fault", "`dl_device` with the object's own device changes nothing"),
    "DEV-06": ("fault", "a `dl_device` that cannot be served raises BufferError"),
    "DEV-07": ("note", "`dl_device=(1, 0)` gives memory that the processor reads"),
    "NEG-01": ("fault", "stream, max_version, dl_device and copy are keywords, may be None, and only keywords"),
    "NEG-02": ("note", "a consumer that names no version gets a legacy tensor"),
    "NEG-04": ("note", "a consumer that knows version 1 gets a versioned tensor"),
    "NEG-05": ("note", "a consumer that knows a later version gets a versioned tensor"),
    "NEG-06": ("fault", "a consumer that only knows an older version gets a legacy tensor or BufferError"),
    "NEG-07": ("fault", "nobody gets a versioned tensor unasked"),
    "NEG-08": ("fault", "the tensor is of major version 1"),
    "NEG-17": ("note", "a `max_version` that is no pair of integers is refused"),
    "NEG-18": ("note", "an unknown keyword raises TypeError"),
    "CAP-01": ("fault", "the capsule bears one of the two names of the standard"),
    "CAP-04": ("fault", "the capsule has a destructor"),
    "CAP-05": ("fault", "the destructor leaves a consumed tensor alone"),
    "CAP-08": ("fault", "the deleter is not NULL"),
    "CAP-12": ("fault", "each call gives a tensor of its own"),
    "CAP-13": ("fault", "the deleter runs on another thread, without the GIL"),
    "CAP-17": ("fault", "the destructor keeps the exception that is on its way, and raises none"),
    "CAP-26": ("fault", "a capsule that nobody consumes gives everything back"),
    "CAP-28": ("note", "the deleter gives its reference back at once"),
    "CPY-01": ("fault", "`copy=True` copies"),
    "CPY-02": ("fault", "`copy=False` does not copy"),
    "CPY-04": ("fault", "a copy is flagged IS_COPIED"),
    "CPY-05": ("fault", "only a copy is flagged IS_COPIED"),
    "CPY-06": ("fault", "two copies have nothing in common"),
    "CPY-07": ("note", "a copy may be written"),
    "CPY-09": ("note", "`copy=True` copies for a legacy consumer too"),
    "CPY-10": ("note", "`copy=True` is served"),
    "CPY-11": ("note", "a `copy` that is neither None nor a bool raises TypeError"),
    "CPY-14": ("note", "a copy is aligned to 64 bytes, as jax wants it"),
    "STC-05": ("fault", "`stream=-1` is served: no waiting"),
    "STC-06": ("fault", "stream 0 is refused for CUDA"),
    "STC-07": ("fault", "a stream below -1 is refused"),
    "STC-12": ("fault", "a stream is refused for memory without streams"),
    "ERR-04": ("note", "a bad stream raises ValueError"),
    "ERR-06": ("fault", "no RuntimeError, AssertionError or panic comes out"),
    "DTY-01": ("fault", "the data type is one that DLPack 1.3 knows"),
    "DTY-02": ("fault", "the width fits the code of the data type"),
    "DTY-07": ("fault", "the data type has one lane or more"),
    "FLG-01": ("note", "no unknown flag is set"),
    "FLG-04": ("fault", "read-only memory is not handed to legacy consumers, who could not know"),
    "FLG-07": ("fault", "only types below 8 bits are flagged IS_SUBBYTE_TYPE_PADDED"),
    "LAY-02": ("fault", "there are strides"),
    "LAY-05": ("note", "a tensor without elements points nowhere"),
    "LAY-06": ("fault", "a tensor with elements points somewhere"),
    "LAY-08": ("fault", "`byte_offset` is 0 where memory has addresses; four libraries ignore it"),
    "LAY-11": ("note", "the data is aligned to 64 bytes; else jax copies and TensorFlow may abort"),
    "LAY-12": ("note", "the data is aligned to its elements"),
    "LAY-16": ("note", "memory that appears in several places is read-only"),
    "LAY-18": ("note", "a tensor without elements has row-major strides"),
    "LAY-19": ("fault", "rank and extents are not negative, and their product fits an address"),
    "LAY-20": ("note", "the rank is 64 at most"),
    "XAP-02": ("fault", "`__dlpack_c_exchange_api__` is a capsule of the type, named `dlpack_exchange_api`"),
    "XAP-04": ("note", "`__c_dlpack_exchange_api__` leads to the same table"),
    "XAP-05": ("fault", "the capsule of the table has no destructor"),
    "XAP-06": ("fault", "the table is of major version 1"),
    "XAP-07": ("fault", "the four functions are there"),
    "XAP-12": ("fault", "an object of another type raises TypeError"),
    "XAP-14": ("fault", "the table exports what `__dlpack__` exports"),
    "XAP-15": ("fault", "the table's tensor has its own deleter and gives everything back"),
    "XAP-17": ("fault", "a tensor comes back as an object, or stays the caller's"),
    "XAP-19": ("fault", "the tensor for looking at says what `__dlpack__` says"),
    "XAP-20": ("note", "read-only memory is not lent without the flag"),
    "XAP-22": ("fault", "the allocator gives what was asked, or calls SetError"),
    "XAP-24": ("note", "the processor's current stream is NULL"),
    "KIT-1": ("fault", "shape, data type and elements do not depend on how they are asked for"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was seen: `ok`, `note` or `fault`, the rule it belongs to, and what it was."""

    level: Level
    rule: str
    seen: str

    def __str__(self) -> str:
        return f"{self.level:<6}{self.rule:<8}{self.seen}"


@dataclass
class Report:
    """What was found on one object. `print(report)` shows notes and faults, `report.everything()` all of it."""

    name: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """What must be mended."""
        return [finding for finding in self.findings if finding.level == "fault"]

    @property
    def notes(self) -> list[Finding]:
        """What is worth knowing."""
        return [finding for finding in self.findings if finding.level == "note"]

    def expect(self, rule: str, kept: bool, seen: str) -> bool:
        """Writes down whether a rule was kept: the first time that it was, and the first time that it was not."""
        level = "ok" if kept else RULES[rule][0]
        if all((other.rule, other.level) != (rule, level) for other in self.findings):
            self.findings.append(Finding(level, rule, seen))
        return kept

    def note(self, rule: str, seen: str) -> None:
        """Writes down, once, something that breaks no rule and that users should hear of."""
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
