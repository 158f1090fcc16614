"""Odd arguments for `__dlpack__`, `__dlpack_device__` and the functions that import: an appropriate exception, or a result."""

import enum
import gc
import random
import sys

import dlpack_probe as p
import report

try:
    import numpy
except ImportError:
    numpy = None


class Raised(Exception):
    """Raised by the arguments themselves."""


def raise_(*_, **__):
    raise Raised


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if self.value is None:
            raise Raised
        return self.value


class Nasty:
    """Every operation of it raises."""

    __eq__ = __bool__ = __len__ = __iter__ = __index__ = __int__ = __float__ = __getitem__ = __repr__ = raise_

    def __hash__(self):
        raise Raised


class Int(int):
    def __index__(self):
        raise Raised

    __eq__ = __int__ = __index__

    def __hash__(self):
        return 1


class Tuple(tuple):
    def __len__(self):
        return 7

    __getitem__ = __iter__ = raise_


class Name(str):
    def __hash__(self):
        return super().__hash__()

    def __eq__(self, other):
        return super().__eq__(other)


class Device(enum.IntEnum):
    CPU = 1
    CUDA = 2


class Describes(dict):
    """Pretends to be of another class."""

    __class__ = property(lambda self: tuple)


def pool():
    circle = []
    circle.append(circle)
    numbers = [0, 1, -1, 2, 3, 7, 2**31, -(2**31) - 1, 2**32, 2**63, 2**64, -(2**63), 10**40, 1.0, 0.5, float("nan"), 1j]
    texts = ["", "cpu", "1", "\ud800", "x" * 1000, b"", b"1", bytearray(2), memoryview(b"12")]
    objects = [None, True, False, ..., NotImplemented, object(), int, range(2), slice(1), {}, {1: 0}, set(), circle, raise_]
    own = [Index(1), Index(0), Index(None), Index("x"), Index(2**70), Nasty(), Int(1), Int(2), Tuple((1, 0)), Device.CPU]
    pairs = [(), (1,), (1, 0), (1, 3), (2, 0), (0, 0), (-1, 0), (1, 0, 0), [1, 0], (1.0, 0), ("1", 0), (True, False)]
    pairs += [(None, None), (2**40, 0), (1, 2**40), (1, -1), (Index(1), Index(0)), (Int(1), Int(0)), (Nasty(), 0), (1, Nasty())]
    pairs += [(Device.CPU, 0), (Device.CUDA, 0), ((1, 0), 0), (circle, circle), Describes(), Tuple(), (1, 10**30)]
    if numpy:
        numbers += [numpy.int64(1), numpy.int8(-1), numpy.float32(1), numpy.bool_(True), numpy.uint64(2**63)]
        pairs += [numpy.array([1, 0]), (numpy.int32(1), numpy.int32(0)), numpy.zeros(0)]
    return numbers + texts + objects + own + pairs


KNOWN = ["stream", "max_version", "dl_device", "copy"]
NAMES = KNOWN * 4 + ["version", "x", "", "ü", "\ud800", "Stream", "stream ", "self", "copy\0", "max_version" * 9]
FINE = (TypeError, ValueError, BufferError, OverflowError, Raised)


def outcome(act, *arguments, **keywords):
    """The result of a call, and the exception if there was one."""
    try:
        return act(*arguments, **keywords), None
    except BaseException as error:
        error.__traceback__ = None
        return None, error


def fits(error):
    return isinstance(error, (*FINE, MemoryError)) and not isinstance(error, UnicodeError)


def judge_export(rng, values, owners):
    owner = rng.choice(owners)
    names = rng.sample(NAMES, rng.randrange(0, 4))
    keywords = {Name(name) if rng.random() < 0.2 else name: rng.choice(values) for name in names}
    arguments = [rng.choice(values) for _ in range(rng.choice([0, 0, 0, 0, 0, 1, 2, 5]))]
    way = rng.randrange(6)
    if way == 0:
        act = type(owner).__dlpack__
        arguments.insert(0, rng.choice([owner, owner, owners[0], rng.choice(values)]))
    elif way == 1:
        act, keywords = owner.__dlpack_device__, keywords if rng.random() < 0.5 else {}
    else:
        act = owner.__dlpack__
    result, error = outcome(act, *arguments, **keywords)
    if error is not None:
        return "" if fits(error) else f"{type(error).__name__}: {error}"
    if way == 1:
        return "" if not arguments and not keywords and len(result) == 2 else "arguments of __dlpack_device__ are taken"
    if type(result).__name__ != "PyCapsule":
        return f"a {type(result).__name__} is exported"
    # Only keywords that the standard names, each once.
    if way != 0 and arguments or any(name not in KNOWN for name in keywords):
        return "what is no argument is taken"
    return ""


class Odd:
    """Returns any value as its device, and exports any object."""

    def __init__(self, device, answer, error):
        self.device, self.answer, self.error = device, answer, error

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **request):
        if self.error is not None:
            raise self.error
        if self.answer is Odd:
            return p.Probe([2]).__dlpack__(**request)
        return self.answer


ERRORS = [None] * 5 + [TypeError, BufferError, Raised, KeyError, StopIteration, KeyboardInterrupt, RecursionError, SystemExit]


def judge_import(rng, values, owners):
    error = rng.choice(ERRORS)
    answer = Odd if rng.random() < 0.3 else rng.choice(values)
    odd = Odd(rng.choice([(1, 0), rng.choice(values)]), answer, error)
    act = rng.choice([p.take, p.look, p.adopt, p.take_points, p.first, p.inspect, p.text])
    result, raised = outcome(act, rng.choice([odd, odd, odd, rng.choice(values)]))
    if raised is None or fits(raised) or isinstance(raised, AttributeError):
        return ""
    return "" if error is not None and isinstance(raised, error) else f"{type(raised).__name__}: {raised}"


def arguments(tally):
    rng, values = random.Random(report.SEED), pool()
    owners = [p.Probe([3]), p.WProbe([3]), p.Mutable([1.0]), p.Owned([1.0]), p.take(p.Probe([3])), p.Batch(2), p.ByHand([1.0])]
    for judge in [judge_export, judge_import] * 500:
        judge(rng, values, owners)
    gc.collect()
    alive, held = p.alive(), [sys.getrefcount(owner) for owner in owners]
    things, blocks = [sys.getrefcount(value) for value in values], sys.getallocatedblocks()
    while not tally.done:
        judge = rng.choice([judge_export, judge_import])
        tally.judge(judge(rng, values, owners))
    gc.collect()
    if p.alive() != alive or [sys.getrefcount(owner) for owner in owners] != held:
        tally.bad("owners or references to them are left")
    grown = [now - then for now, then in zip([sys.getrefcount(value) for value in values], things)]
    # A new number or name may add a few references; a leak adds one for each call.
    if max(grown) > tally.planned // 1000 + 50:
        tally.bad(f"references to {values[grown.index(max(grown))]!r:.50} are left: {max(grown)}")
    if sys.getallocatedblocks() - blocks > tally.planned // 100 + 2000:
        tally.bad(f"{sys.getallocatedblocks() - blocks} objects of Python are left")


report.main({"odd arguments": (arguments, 1_000_000, 10_000)})
