"""One allocation that fails, or all from one on, in Python's allocator and in Rust's, at every point of dozens of operations.

Each attempt runs in its own process. It may raise, or succeed without the allocation; it must not crash, keep anything, or break
later operations. PyO3's conversions of arguments and results are excluded: it panics there, as documented. CPython replaces an
exception by a `SystemError` if it cannot allocate the traceback: ignored, as long as it does the same for `chr(-1)`. From Python
3.12 on CPython leaks the result of a `__buffer__` if a later allocation fails: ignored once, if it does so with a class in plain
Python."""

import gc
import pickle
import sys

import _testcapi
import capi
import dlpack_probe as p
import report

try:
    import numpy
except ImportError:
    numpy = None

NEWEST = {"max_version": (1, 3)}
MOST = 400
MODES = ["one", "all"]
# After this many attempts without a failure, the operation has enough memory.
UNTOUCHED = 12
ALLOCATORS = {
    "Python": (_testcapi.set_nomemory, _testcapi.remove_mem_hooks),
    "Rust": (p.set_nomemory_in_rust, p.remove_nomemory_in_rust),
}


class Plain:
    """A class with a buffer, without our code."""

    def __init__(self):
        self.memory = bytearray(2)

    def __buffer__(self, flags):
        return memoryview(self.memory)


def operations():
    frozen, shared, owned, batch = p.Probe([4]), p.WProbe([2, 2]), p.Owned([1.0]), p.Batch(2)
    mutable, tensor, state = p.Mutable([1.0]), p.take(p.Probe([4])), p.take(p.WProbe([3], "float64"))
    relay, old = capi.Relay(frozen), capi.Relay(shared)
    deep = p.Probe([1, 2, 1, 1, 1, 2, 1, 1])
    outside, old_outside = p.Probe([9], items=3), capi.Relay(p.Probe([9], items=3))
    found = {
        "__dlpack__": lambda: frozen.__dlpack__(**NEWEST),
        "__dlpack__, legacy": lambda: frozen.__dlpack__(),
        "__dlpack__, copy": lambda: shared.__dlpack__(copy=True, **NEWEST),
        "__dlpack__, owner": lambda: owned.__dlpack__(**NEWEST),
        "__dlpack__, borrowed": lambda: mutable.__dlpack__(**NEWEST),
        "__dlpack__, tensor": lambda: tensor.__dlpack__(**NEWEST),
        "__dlpack__, many axes": lambda: deep.__dlpack__(**NEWEST),
        "__dlpack__, many axes, copy": lambda: deep.__dlpack__(copy=True, **NEWEST),
        "__dlpack__, refused": lambda: frozen.__dlpack__(stream=7, **NEWEST),
        "__dlpack__, out of bounds": lambda: outside.__dlpack__(**NEWEST),
        "__dlpack_device__": lambda: frozen.__dlpack_device__(),
        "attribute": lambda: batch.rewards,
        "import": lambda: p.take(frozen),
        "import, many axes": lambda: p.take(deep).__dlpack__(),
        "import, capsule": lambda: p.take(relay),
        "import, refused": lambda: p.take(old_outside),
        "import, values": lambda: p.import_into(old, False),
        "import, adopted": lambda: p.import_into(old, True),
        "import, values that do not fit": lambda: p.import_into(batch, False),
    }
    buffered, rows, picture, tables = p.Buffered([0.0, 1.0]), p.Rows([1.0] * 4), p.Picture(2, 2), p.Tables(2)
    settings, plain, one = p.Settings(2), p.WProbe([4]), p.take(p.Probe([1]))
    strided, pickled, buffers = tensor[::2], pickle.dumps(tensor, 4), []
    apart = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    found |= {
        "memoryview": lambda: memoryview(buffered),
        "memoryview, of a Tensor": lambda: memoryview(tensor),
        "memoryview, refused": lambda: memoryview(tables),
        "memoryview, refused for its device": lambda gpu=p.Elsewhere(2): memoryview(gpu),
        "tolist": lambda: tensor.tolist(),
        "item": lambda: one.item(),
        "float": lambda: float(one),
        "list": lambda: list(tensor),
        "list, of a class": lambda: list(rows),
        "part": lambda: tensor[1:, None],
        "part, refused": lambda: tensor[9],
        "repr": lambda: repr(tensor),
        "pickle, reduced": lambda: tensor.__reduce_ex__(4),
        "pickle, reduced for protocol 5": lambda: tensor.__reduce_ex__(5),
        "pickle, packed": lambda: strided.__reduce_ex__(5),
        "pickle, reduced, of a class": lambda: picture.__reduce_ex__(5),
        "pickle, dumped": lambda: pickle.dumps(tensor, 4),
        "pickle, loaded": lambda: pickle.loads(pickled),
        "pickle, loaded out of band": lambda: pickle.loads(apart, buffers=buffers),
        "pickle, refused": lambda: p.Tensor._restore(b"1234", (2, 32, 1, False), (2,)),
        "copy": lambda: tensor.__copy__(),
        "columns": lambda: tables.price,
        "setter": lambda: setattr(settings, "state", state),
        "setter, refused": lambda: setattr(settings, "state", plain),
    }
    # `Convert` calls NumPy, which is not our code.
    for kind in [*p.kinds_of_views(), "to_vec"]:
        if kind != "View, Convert":
            found[f"view, {kind}"] = lambda kind=kind: p.make_view(plain, kind)
    found["view, refused for the rank"] = lambda: p.make_view(shared, "View")
    found["view, refused to write"] = lambda: p.make_view(frozen, "ViewMut")
    if numpy:
        found["asarray"] = lambda: numpy.asarray(frozen)
        found["asarray, of a Tensor"] = lambda: numpy.asarray(tensor)
        found["Tensor.numpy"] = lambda: tensor.numpy()
        found["Numpy<Managed>"] = lambda: p.numpy_over(frozen)
        found["view, of numpy"] = lambda array=numpy.zeros(4, "float32"): p.make_view(array, "ViewMut, promised")
        found["numpy.from_dlpack"] = lambda: numpy.from_dlpack(frozen)
        found["import of numpy"] = lambda array=numpy.arange(3.0): p.take(array)
        lent = numpy.ndarray(4, "float32", buffer=bytearray(16))
        found["view, of numpy over a bytearray"] = lambda: p.make_view(lent, "ViewMut, promised")
        found["import of numpy over a bytearray"] = lambda: p.take(lent)
    owners = [frozen, deep, shared, owned, batch, mutable, tensor, buffered, rows, picture, tables, settings, plain, one]
    return found, owners


def usual(act):
    """The result of an attempt without a failure."""
    try:
        act()
    except Exception as error:
        return type(error).__name__
    return "done"


KEPT = "something is kept"
# The operations in which CPython calls a `__buffer__`.
BUFFERS = ("memoryview", "asarray", "pickle")
TRACELESS = "SystemError: error return without exception set"
UNSET = "returned NULL without setting an exception"


def attempt(act, owners, allocator, first, end, expected, forgives=False):
    fail, stop = ALLOCATORS[allocator]
    gc.collect()
    held, alive = [sys.getrefcount(owner) for owner in owners], p.alive()
    came = text = "done"
    result = None
    fail(first, end)
    try:
        result = act()
    except BaseException as error:
        stop()
        came, text = type(error).__name__, f"{type(error).__name__}: {error}"
        error.__traceback__ = error.__context__ = error.__cause__ = None
    finally:
        stop()
    result = None
    gc.collect()
    # If the text names a Python function, the traceback of an exception inside of it could not be allocated.
    traceless = text.startswith(TRACELESS) or "<function " in text and text.endswith(UNSET)
    if came in ("SystemError", "PanicException") and not (traceless and forgives):
        return text, came
    if usual(act) != expected:
        return f"afterwards {usual(act)}, not {expected}", came
    gc.collect()
    if p.alive() != alive or [sys.getrefcount(owner) for owner in owners] != held:
        return KEPT, came
    return "", came


def failures(tally):
    found, owners = operations()
    few = ["__dlpack__", "__dlpack__, refused", "attribute", "import", "import, capsule", "import, many axes"]
    few += ["memoryview", "memoryview, refused", "tolist", "list", "item", "pickle, reduced", "setter", "view, ViewMut, promised"]
    chosen = list(found) if tally.planned > 1000 else few
    # Each operation is repeated until it has enough memory.
    tally.planned = len(chosen) * len(ALLOCATORS) * len(MODES) * (UNTOUCHED + 1)
    hits, failed = {}, dict.fromkeys(ALLOCATORS, 0)
    # Excludes existing objects from later collections.
    gc.collect()
    gc.freeze()
    own = [report.apart(lambda: attempt(lambda: chr(-1), owners, "Python", k, k + 1, "ValueError"))[0] for k in range(20)]
    forgives = TRACELESS in own
    plain = Plain()
    control = lambda k: attempt(lambda: memoryview(plain), [plain.memory], "Python", k, k + 1, usual(lambda: memoryview(plain)))
    leaks = sum(report.apart(lambda: control(k))[0] == KEPT for k in range(20))
    for name in chosen:
        act = found[name]
        for _ in range(3):
            expected = usual(act)
        for allocator in ALLOCATORS:
            for mode in MODES:
                untouched, cell = 0, []
                for k in range(MOST):
                    end = k + 1 if mode == "one" else 0
                    note, came = report.apart(lambda: attempt(act, owners, allocator, k, end, expected, forgives))
                    failed[allocator] += came == "MemoryError"
                    if note:
                        cell.append((k, note))
                    else:
                        tally.good()
                    # Later allocations belong to later operations.
                    untouched = untouched + 1 if came == expected and not note else 0
                    if untouched == UNTOUCHED:
                        break
                if name.startswith(BUFFERS) and len(cell) <= leaks and all(note == KEPT for _, note in cell):
                    tally.good(len(cell))
                elif cell:
                    hits[name, allocator, mode] = cell
                    tally.bad("", len(cell))
    for allocator, count in failed.items():
        if count < len(chosen):
            tally.bad(f"{allocator}'s allocator failed only {count} times in {len(chosen)} operations; ")
    for (name, allocator, mode), bad in hits.items():
        what = "from it on" if mode == "all" else "alone"
        places = ", ".join(str(k) for k, _ in bad[:9])
        tally.note += f"{name}: {bad[0][1]} ({allocator}'s allocation {places} {what}); "


report.main({"failing allocations": (failures, 4_000, 500)})
