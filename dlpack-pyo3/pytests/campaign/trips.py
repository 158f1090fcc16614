"""Round trips of every kind, also refused ones, after which memory, references and owners are as before."""

import gc
import itertools
import os
import sys

import capi
import dlpack_probe as p
import report
import uses

try:
    import numpy
except ImportError:
    numpy = None

NEWEST = {"max_version": (1, 3)}
# Bytes and Python objects that allocators keep for themselves; a million leaked pointers would be more.
SLACK, BLOCKS, RESIDENT = 48 << 10, 300, 6 << 20


def refused(act, *arguments, **keywords):
    def trip():
        try:
            act(*arguments, **keywords)
        except (BufferError, TypeError, ValueError, RuntimeError):
            return
        raise AssertionError("it is not refused")

    return trip


def kinds():
    frozen, shared = p.Probe([2, 3]), p.WProbe([2, 3])
    mutable, alone = p.Mutable([1.0] * 4), p.Exclusive([1.0] * 4)
    owned, batch, lent = p.Owned([1.0] * 4), p.Batch(4), p.Lent(2, 3)
    tensor, hand, via = p.take(frozen), p.ByHand([1.0]), p.Doubled([1.0, 2.0])
    outside, gpu, strict = p.Probe([9], items=3), p.Elsewhere(2), p.Strict([1.0])
    table = p.Probe.__c_dlpack_exchange_api__
    spent = frozen.__dlpack__(**NEWEST)
    p.take(spent)

    def export(owner):
        return lambda: owner.__dlpack__(**NEWEST)

    found = {
        "export, frozen": export(frozen),
        "export, shared": export(shared),
        "export, mutable": export(mutable),
        "export, alone": export(alone),
        "export, owner": export(owned),
        "export, by hand": export(hand),
        "export, computed": export(via),
        "export, lent": export(lent),
        "export, tensor": export(tensor),
        "export, fresh object": lambda: p.Probe([2]).__dlpack__(**NEWEST),
        "legacy": lambda: frozen.__dlpack__(),
        "legacy, shared": lambda: shared.__dlpack__(),
        "copy": lambda: frozen.__dlpack__(copy=True, **NEWEST),
        "legacy copy": lambda: frozen.__dlpack__(copy=True),
        "device": lambda: frozen.__dlpack_device__(),
        "table": lambda: p.status_of_export(table, frozen),
        "table, another class": lambda: p.status_of_export(table, shared),
        "attribute": lambda: batch.rewards,
        "import": lambda: p.take(frozen),
        "import, capsule": lambda: p.take(frozen.__dlpack__(**NEWEST)),
        "import, legacy capsule": lambda: p.take(shared.__dlpack__()),
        "import, method": lambda: p.take(capi.Relay(frozen)),
        "import, old producer": lambda: p.take(capi.OldRelay(shared)),
        "import, of an import": lambda: p.take(p.take(frozen)),
        "import, values": lambda: p.take_points(frozen),
        "import, adopted": lambda: p.adopt(shared),
        "import, kept in Rust": lambda: (p.keep(frozen), p.let_go()),
        "look": lambda: p.look(frozen),
        "inspect": lambda: p.inspect(frozen),
        "repr": lambda: repr(tensor),
        "refused, stream": refused(frozen.__dlpack__, stream=7, **NEWEST),
        "refused, device": refused(frozen.__dlpack__, dl_device=(2, 0), **NEWEST),
        "refused, no copy": refused(frozen.__dlpack__, copy=False),
        "refused, old consumer": refused(strict.__dlpack__),
        "refused, keyword": refused(frozen.__dlpack__, no=1),
        "refused, type": refused(frozen.__dlpack__, max_version="no"),
        "refused, argument": refused(frozen.__dlpack_device__, 1),
        "refused, layout": refused(outside.__dlpack__, **NEWEST),
        "refused, import": refused(p.take, outside),
        "refused, spent capsule": refused(p.take, spent),
        "refused, no capsule": refused(p.take, Answer(3)),
        "refused, values": refused(p.take_points, batch),
        "refused, adopted": refused(p.adopt, p.Probe([4], "int32")),
        "refused, no producer": no_producer,
        "refused, gpu": refused(p.adopt, gpu),
        "refused, while it is read": refused(lambda: alone.during_read(lambda: alone.__dlpack__(**NEWEST))),
        "capsule renamed, and released": lambda: capi.export(frozen).release(),
        "released without the GIL": lambda: capi.export(frozen).release(gil=False),
    }
    found["buffer"] = lambda buffered=p.Buffered([1.0] * 4): memoryview(buffered).release()
    found["released on a foreign thread"] = lambda: capi.export(frozen).release_on_foreign_thread()
    if numpy:
        array = numpy.arange(6, dtype="float32").reshape(2, 3)
        found["numpy"] = lambda: numpy.from_dlpack(frozen)
        found["numpy, writable"] = lambda: numpy.from_dlpack(shared)
        found["of numpy"] = lambda: p.take(array)
        found["of numpy, adopted"] = lambda: p.adopt(array)
        found["of numpy, values"] = lambda: p.take_points(array)
        found["of numpy, refused"] = refused(p.take_points, array[0])
    return found, [frozen, shared, mutable, alone, owned, batch, lent, tensor, hand, via, outside, gpu, strict]


class Answer:
    def __init__(self, answer):
        self.answer = answer

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **request):
        return self.answer


def no_producer():
    try:
        p.take(3)
    except AttributeError:
        return
    raise AssertionError("it is not refused")


def resident():
    """The resident memory of this process in bytes; 0 if the system does not report it in this way."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def usage():
    return (capi.memory_in_use(), sys.getallocatedblocks(), resident())


def repeat(act, count):
    for _ in itertools.repeat(None, count):
        act()


def grown(act, count):
    """What is wrong after this many trips."""
    repeat(act, count // 5 + 200)
    gc.collect()
    before = usage()
    repeat(act, count - count // 5)
    # Cycles are not leaks. No other code runs that might free something, such as a call of a function of the module.
    gc.collect()
    memory, blocks, pages = (now - then for now, then in zip(usage(), before))
    if memory > SLACK or blocks > BLOCKS or pages > RESIDENT:
        return f"{memory} bytes, {blocks} objects of Python, {pages} bytes resident more after {count} trips"
    return ""


def trips(tally):
    (exports, owners), (others, users) = kinds(), uses.uses()
    found, owners = {**exports, **others}, owners + users
    # Most of the others take longer, and a leaked pointer is noticed after far fewer.
    share = -(-tally.planned // (4 * len(exports) + len(others)))
    for act in found.values():
        repeat(act, 10)
    # Fills the module's limited record of drops.
    repeat(lambda: p.Probe([1]), 10_001)
    gc.collect()
    held, alive = [sys.getrefcount(owner) for owner in owners], p.alive()
    growing = []
    for name, act in found.items():
        each = 4 * share if name in exports else share
        note = grown(act, each)
        gc.collect()
        if [sys.getrefcount(owner) for owner in owners] != held:
            note = note or "references are left"
        if p.alive() != alive:
            note = note or "owners are left"
        tally.good(each - bool(note))
        if note:
            tally.bad(f"{name}: {note}")
            growing.append(name)
            held, alive = [sys.getrefcount(owner) for owner in owners], p.alive()
    if growing:
        tally.note += f"; of these kinds: {'; '.join(growing)}"


report.main({"round trips": (trips, 10_000_000, 110_000)})
