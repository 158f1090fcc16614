"""The release of tensors: unconsumed, consumed, on another thread, while an exception is set."""

from __future__ import annotations

import sys
import threading

from . import _abi
from .answer import LEGACY, VERSIONED, call_dlpack
from .report import Report

ROUNDS = 5


def quiet(report: Report, obj: object) -> bool:
    """Whether destructors set no exception. A pending exception would surface in unrelated code of the kit."""
    for words in (dict[str, object](), {"max_version": (1, 0)}):
        answer = call_dlpack(obj, **words)
        if answer.tensor is None:
            continue
        address = id(answer.capsule)
        _abi.take_reference(address)
        answer.capsule = None
        try:
            _abi.drop_reference(address)
        except Exception as error:
            return report.expect("CAP-17", False, f"{answer.call}: the destructor raised {type(error).__name__}")
    return True


def each_its_own(report: Report, obj: object) -> bool:
    for words in (dict[str, object](), {"max_version": (1, 0)}):
        one, two = call_dlpack(obj, **words), call_dlpack(obj, **words)
        if one.tensor is not None and two.tensor is not None:
            apart = one.capsule is not two.capsule and one.tensor.managed != two.tensor.managed
            if not report.expect(
                "CAP-12", apart, f"{one.call}, twice: at {one.tensor.managed:#x} and {two.tensor.managed:#x}"
            ):
                return False
    return True


def release(report: Report, obj: object) -> None:
    """Checks the release by the destructor and by the deleter, also on another thread."""
    forms: list[tuple[bytes, dict[str, object]]] = [(LEGACY, {}), (VERSIONED, {"max_version": (1, 0)})]
    for name, words in forms:
        answer = call_dlpack(obj, **words)
        if answer.name != name:
            continue
        call = answer.call
        answer.capsule = None
        before = sys.getrefcount(obj)
        for _ in range(ROUNDS):
            call_dlpack(obj, **words)
        left = sys.getrefcount(obj) - before
        whole = report.expect("CAP-26", left == 0, f"{call}, {ROUNDS} capsules unconsumed: {left} references left")
        if _destructor(report, obj, words, call) and whole:
            _deleter(report, obj, words, call)


def _destructor(report: Report, obj: object, words: dict[str, object], call: str) -> bool:
    answer = call_dlpack(obj, **words)
    address = id(answer.capsule)
    _abi.take_reference(address)
    answer.capsule = None
    kept = _abi.drop_while_raising(address)
    report.expect("CAP-17", kept, f"{call}: the capsule dropped while an exception was set")

    # The destructor of a consumed tensor: visible only if the export holds a reference to the object.
    before = sys.getrefcount(obj)
    answer = call_dlpack(obj, **words)
    if sys.getrefcount(obj) == before or answer.name is None or answer.tensor is None:
        return True
    _abi.capsule_rename(answer.capsule, _abi.USED[answer.name])
    answer.capsule = None
    untouched = report.expect("CAP-05", sys.getrefcount(obj) > before, f"{call}: the consumed capsule dropped")
    if untouched:
        answer.tensor.release()
    return untouched


def _deleter(report: Report, obj: object, words: dict[str, object], call: str) -> None:
    before = sys.getrefcount(obj)
    answer = call_dlpack(obj, **words)
    if answer.name is None or answer.tensor is None:
        return
    held = sys.getrefcount(obj) > before
    _abi.capsule_rename(answer.capsule, _abi.USED[answer.name])
    thread = threading.Thread(target=answer.tensor.release)
    thread.start()
    thread.join()
    said = f"{call}: the deleter called on another thread"
    now = sys.getrefcount(obj) == before
    answer.capsule = None
    for _ in range(ROUNDS):
        # A binding may defer the release to its next use.
        call_dlpack(obj, **words)
    later = sys.getrefcount(obj) == before
    if report.expect("CAP-13", later, f"{said} released {'its references' if later else 'nothing'}") and held:
        report.expect("CAP-28", now, f"{said} released its reference {'at once' if now else 'later'}")
