"""`check_producer(obj)`: makes every request of a consumer to an object, and reports what was wrong.

It works on any object with `__dlpack__`, of any library, and needs nothing but the standard library.

    >>> from dlpack_conformance import check_producer
    >>> print(check_producer(numpy.arange(3)))

It exports tensors, inspects them and releases them; it never writes to the object's memory. Do not use the object
elsewhere during the check, because its references are counted.
"""

from __future__ import annotations

from . import _abi, _lifetime, _table
from .answer import Answer, Tensor, call_dlpack
from .report import Finding, Report

__all__ = ["Finding", "Report", "check_producer"]

# A device type that no version of DLPack has.
NOWHERE = (99, 0)


def check_producer(obj: object, *, hostile: bool = False) -> Report:
    """Checks one object. With `hostile` it also makes calls that may crash a producer with missing checks."""
    kind = type(obj)
    report = Report(kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}")
    if not _methods(report, obj):
        return report
    device = _device(report, obj)
    if not _lifetime.quiet(report, obj):
        return report
    versioned = call_dlpack(obj, max_version=(1, 3))
    legacy = call_dlpack(obj)
    if versioned.tensor is None and legacy.tensor is None and versioned.error is not None:
        keywords = report.expect("NEG-01", not versioned.refused(TypeError), versioned.said)
        if report.expect("ERR-06", not _wild(versioned), versioned.said) and keywords:
            report.note("NEG-04", f"{versioned.said}; nothing else was checked")
        return report
    base = versioned.tensor or legacy.tensor
    sound = [_tensor(report, answer, device) for answer in (versioned, legacy)]
    if base is None or not all(sound):
        return report
    if base.elements and base.device[0] == _abi.CPU:
        report.expect(
            "LAY-11",
            base.first % 64 == 0,
            f"the first element is at {base.first:#x}, aligned to {base.first & -base.first} bytes",
        )
    # Without the keywords no request can be made; that was reported above.
    if _calls(report, obj, base):
        _versions(report, obj, base, legacy)
        _devices(report, obj, base)
        _copies(report, obj, base)
        _streams(report, obj, base)
    apart = _lifetime.each_its_own(report, obj)
    if hasattr(kind, _table.NAME) or hasattr(obj, _table.NAME):
        _table.check(report, obj, base, hostile)
    # What was read so far is given back before the references are counted.
    versioned.capsule = legacy.capsule = None
    if apart:
        _lifetime.release(report, obj)
    return report


def _methods(report: Report, obj: object) -> bool:
    kind = type(obj)
    found = {name: callable(getattr(kind, name, None)) for name in ("__dlpack__", "__dlpack_device__")}
    missing = ", ".join(name for name, there in found.items() if not there)
    report.expect(
        "CAP-27", not missing, f"type {kind.__qualname__} has no method {missing}" if missing else "both are there"
    )
    return all(callable(getattr(obj, name, None)) for name in found)


def _device(report: Report, obj: object) -> tuple[int, int] | None:
    try:
        device = obj.__dlpack_device__()  # type: ignore[attr-defined]
    except Exception as error:
        report.expect("DEV-01", isinstance(error, BufferError), f"__dlpack_device__() raised {type(error).__name__}")
        return None
    said = f"__dlpack_device__() returned {device!r}"
    if not report.expect(
        "DEV-01", isinstance(device, tuple) and len(device) == 2 and all(isinstance(n, int) for n in device), said
    ):
        return None
    kind, number = int(device[0]), int(device[1])
    report.expect("DEV-19", 1 <= kind <= 18 and kind not in (5, 6), said)
    report.expect("DEV-03", kind not in _abi.HOST or number == 0, said)
    return kind, number


def _wild(answer: Answer) -> bool:
    return answer.error is not None and (
        isinstance(answer.error, (RuntimeError, AssertionError)) or not isinstance(answer.error, Exception)
    )


def _tensor(report: Report, answer: Answer, device: tuple[int, int] | None) -> bool:
    """Checks the rules for every tensor, of any request. Returns whether its memory can be read."""
    report.expect("ERR-06", not _wild(answer), answer.said)
    if answer.error is not None:
        return True
    if not report.expect("CAP-01", answer.tensor is not None, answer.said) or answer.tensor is None:
        return False
    t, call = answer.tensor, answer.call
    report.expect("CAP-04", bool(_abi.capsule_destructor(answer.capsule)), f"{call}: destructor")
    report.expect("CAP-08", t.deleter != 0, f"{call}: deleter {t.deleter:#x}")
    if t.versioned and not report.expect("NEG-08", t.version[0] == 1, f"{call}: version {t.version}"):
        return False
    _dtype(report, t, call)
    report.expect("FLG-01", t.flags < 8, f"{call}: flags {t.flags:#x}")
    report.expect(
        "FLG-07",
        not t.flags & _abi.IS_SUBBYTE_TYPE_PADDED or t.dtype[1] < 8,
        f"{call}: flags {t.flags:#x}, {t.dtype[1]} bits",
    )
    if device is not None:
        report.expect("DEV-02", t.device == device, f"{call}: on {t.device}, promised {device}")
    return _layout(report, t, call)


def _dtype(report: Report, t: Tensor, call: str) -> None:
    code, bits, lanes = t.dtype
    said = f"{call}: data type (code {code}, {bits} bits, {lanes} lanes)"
    widths = {_abi.BOOL: (8,), _abi.FLOAT: (16, 32, 64, 128), _abi.BFLOAT: (16,), _abi.COMPLEX: (32, 64, 128, 256)}
    widths.update(
        dict.fromkeys(_abi.FLOAT8, (8,)) | dict.fromkeys(_abi.FLOAT6, (6,)) | dict.fromkeys(_abi.FLOAT4, (4,))
    )
    report.expect("DTY-01", code <= 17, said)
    report.expect("DTY-02", bits in widths.get(code, range(1, 256)), said)
    report.expect("DTY-07", lanes > 0, said)


def _layout(report: Report, t: Tensor, call: str) -> bool:
    said = f"{call}: rank {t.ndim}, shape {t.shape}, strides {t.strides}"
    report.expect("LAY-20", t.ndim <= 64, said)
    if not report.expect("LAY-19", t.sane and t.elements * max(t.itemsize, 1) < 1 << 63, said):
        return False
    if t.versioned and t.version >= (1, 2):
        report.expect("LAY-02", t.strides is not None, said)
    elif t.strides is None:
        report.note("LAY-02", f"{said}; that was allowed before 1.2")
    if t.elements == 0:
        report.expect("LAY-05", t.data == 0, f"{call}: no elements, data {t.data:#x}")
        report.expect("LAY-18", t.strides in (None, t.row_major), said)
        return True
    if not report.expect("LAY-06", t.data != 0, f"{call}: {t.elements} elements, data NULL"):
        return False
    if t.device[0] not in (*_abi.HOST, _abi.CUDA):
        return True
    report.expect("LAY-08", t.byte_offset == 0, f"{call}: byte_offset {t.byte_offset}")
    lanes = t.dtype[2] or 1
    # A complex number is aligned as its parts are.
    item = t.itemsize // lanes // (2 if t.dtype[0] == _abi.COMPLEX else 1)
    report.expect("LAY-12", item == 0 or t.first % item == 0, f"{call}: the first element is at {t.first:#x}")
    overlaps = any(step == 0 and extent > 1 for extent, step in zip(t.shape or (), t.strides or t.row_major))
    report.expect("LAY-16", not overlaps or not t.versioned or t.read_only or t.copied, said)
    return True


def _same(report: Report, answer: Answer, base: Tensor) -> bool:
    """Checks that a result equals the first one. Returns whether there is a tensor to check further."""
    if not _tensor(report, answer, base.device) or answer.tensor is None:
        return False
    t = answer.tensor
    same = t.what == base.what and (not (t.readable and base.readable) or t.some() == base.some())
    return report.expect("KIT-1", same, f"{answer.call}: shape {t.shape}, data type {t.dtype}")


def _calls(report: Report, obj: object, base: Tensor) -> bool:
    keywords = ("stream", "max_version", "dl_device", "copy")
    known = True
    for words in (*({key: None} for key in keywords), dict.fromkeys(keywords)):
        answer = call_dlpack(obj, **words)
        known &= report.expect("NEG-01", not answer.refused(TypeError), answer.said)
        _same(report, answer, base)
    answer = call_dlpack(obj, None)
    report.expect("NEG-01", answer.refused(TypeError), answer.said)
    answer = call_dlpack(obj, no_such_keyword=None)
    report.expect("NEG-18", answer.refused(TypeError), answer.said)
    return known


def _versions(report: Report, obj: object, base: Tensor, legacy: Answer) -> None:
    for answer in (legacy, call_dlpack(obj, max_version=None), call_dlpack(obj, max_version=(0, 8))):
        asked = "NEG-06" if "(0, 8)" in answer.call else "NEG-02"
        if not report.expect("NEG-07", not answer.versioned, answer.said):
            continue
        # The standard allows BufferError for both, and read-only memory leaves no other way but a copy.
        if answer.refused(BufferError) and base.read_only:
            report.expect(asked, True, f"{answer.said} (the memory is read-only)")
        else:
            report.expect(asked, answer.legacy or (asked == "NEG-06" and answer.refused(BufferError)), answer.said)
        shared = answer.tensor is not None and base.read_only and answer.tensor.shares_with(base)
        report.expect("FLG-04", not shared, answer.said)
    for asked, version in (("NEG-04", (1, 0)), ("NEG-04", (1, 99)), ("NEG-05", (2, 0))):
        answer = call_dlpack(obj, max_version=version)
        report.expect(asked, answer.versioned, answer.said)
        _same(report, answer, base)
    for nonsense in (1, (1,), "1.0"):
        answer = call_dlpack(obj, max_version=nonsense)
        report.expect("NEG-17", answer.refused(TypeError, ValueError), answer.said)


def _devices(report: Report, obj: object, base: Tensor) -> None:
    answer = call_dlpack(obj, max_version=(1, 0), dl_device=base.device)
    report.expect("DEV-05", answer.tensor is not None and answer.tensor.device == base.device, answer.said)
    _same(report, answer, base)
    answer = call_dlpack(obj, max_version=(1, 0), dl_device=NOWHERE)
    report.expect("DEV-06", answer.refused(BufferError), answer.said)
    if base.device[0] != _abi.CPU:
        answer = call_dlpack(obj, max_version=(1, 0), dl_device=(_abi.CPU, 0))
        report.expect("DEV-07", answer.tensor is not None and answer.tensor.device[0] in _abi.HOST, answer.said)


def _copies(report: Report, obj: object, base: Tensor) -> None:
    again = call_dlpack(obj, max_version=(1, 0))
    if again.tensor is not None and again.tensor.versioned and again.tensor.elements:
        moved = not again.tensor.shares_with(base)
        if moved:
            report.note("CPY-05", "every export is a copy")
        report.expect("CPY-04", again.tensor.copied or not moved, f"{again.call}: flags {again.tensor.flags:#x}")
        report.expect("CPY-05", not again.tensor.copied or moved, f"{again.call}: flags {again.tensor.flags:#x}")
    answer = call_dlpack(obj, max_version=(1, 0), copy=False)
    if _same(report, answer, base) and answer.tensor is not None and base.elements and not base.copied:
        if report.expect("CPY-02", answer.tensor.shares_with(base), answer.said):
            report.expect("CPY-05", not answer.tensor.copied, f"{answer.call}: flags {answer.tensor.flags:#x}")
    elif answer.error is not None:
        report.expect("CPY-02", answer.refused(BufferError), answer.said)
    answer = call_dlpack(obj, copy=False)
    shared = answer.tensor is not None and base.read_only and answer.tensor.shares_with(base)
    report.expect("FLG-04", not shared, answer.said)
    one, two, old = (
        call_dlpack(obj, max_version=(1, 0), copy=True),
        call_dlpack(obj, max_version=(1, 0), copy=True),
        call_dlpack(obj, copy=True),
    )
    report.expect("CPY-10", one.error is None, one.said)
    if _same(report, one, base) and one.tensor is not None:
        t = one.tensor
        report.expect("CPY-01", not t.shares_with(base), f"{one.said} at {t.data:#x}, the object's at {base.data:#x}")
        if t.versioned:
            report.expect("CPY-04", t.copied, f"{one.call}: flags {t.flags:#x}")
            report.expect("CPY-07", not t.read_only, f"{one.call}: flags {t.flags:#x}")
        report.expect(
            "CPY-14", t.elements == 0 or t.first % 64 == 0, f"{one.call}: the first element is at {t.first:#x}"
        )
        if two.tensor is not None:
            report.expect(
                "CPY-06", not t.shares_with(two.tensor), f"two copies are at {t.data:#x} and {two.tensor.data:#x}"
            )
    report.expect("CPY-09", old.tensor is not None and not old.tensor.shares_with(base), old.said)
    _same(report, old, base)
    answer = call_dlpack(obj, max_version=(1, 0), copy="yes")
    report.expect("CPY-11", answer.refused(TypeError), answer.said)


def _streams(report: Report, obj: object, base: Tensor) -> None:
    def refused(rule: str, stream: int) -> None:
        answer = call_dlpack(obj, max_version=(1, 0), stream=stream)
        if report.expect(rule, answer.error is not None, answer.said):
            report.expect("ERR-04", answer.refused(ValueError), answer.said)
            report.expect("ERR-06", not _wild(answer), answer.said)

    if base.device[0] == _abi.CPU:
        refused("STC-12", 1)
        answer = call_dlpack(obj, max_version=(1, 0), stream=-1)
        if answer.error is not None:
            report.note("STC-12", f"{answer.said}; the standard requires it, but cutlass-dsl always passes -1")
            report.expect("ERR-06", not _wild(answer), answer.said)
    elif base.device[0] in (_abi.CUDA, _abi.CUDA_MANAGED):
        refused("STC-06", 0)
        refused("STC-07", -2)
        answer = call_dlpack(obj, max_version=(1, 0), stream=-1)
        report.expect("STC-05", answer.error is None, answer.said)
