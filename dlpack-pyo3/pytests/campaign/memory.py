"""One allocation that fails, or all from one on, in Python's allocator and in Rust's, at every place of ten operations and more.

Each attempt has a process of its own. It may raise, or do without; it must not end the process, keep anything, or break what comes
after it. What PyO3 does for the arguments and the results of a function is not among them: it panics, as it says. And CPython
turns an exception into a `SystemError` where its trace finds no memory: forgiven, as long as it does the same to `chr(-1)`.
"""

import gc
import sys

import _testcapi
import dlpack_probe as p
import report

try:
    import numpy
except ImportError:
    numpy = None

NEWEST = {"max_version": (1, 3)}
MOST = 400
ALLOCATORS = {
    "Python": (_testcapi.set_nomemory, _testcapi.remove_mem_hooks),
    "Rust": (p.set_nomemory_in_rust, p.remove_nomemory_in_rust),
}


class Relay:
    def __init__(self, inner):
        self.inner = inner

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **request):
        return self.inner.__dlpack__(**request)


def operations():
    frozen, shared, owned, batch = p.Probe([4]), p.WProbe([2, 2]), p.Owned([1.0]), p.Batch(2)
    mutable, tensor = p.Mutable([1.0]), p.take(p.Probe([4]))
    relay, old = Relay(frozen), Relay(shared)
    deep = p.Probe([1, 2, 1, 1, 1, 2, 1, 1])
    outside, old_outside = p.Probe([9], items=3), Relay(p.Probe([9], items=3))
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
    if hasattr(p, "Buffered"):
        found["memoryview"] = lambda buffered=p.Buffered([0.0, 1.0]): memoryview(buffered)
    if numpy:
        found["numpy.from_dlpack"] = lambda: numpy.from_dlpack(frozen)
        found["import of numpy"] = lambda array=numpy.arange(3.0): p.take(array)
    return found, [frozen, deep, shared, owned, batch, mutable, tensor]


def usual(act):
    """What an attempt without a failure is like."""
    try:
        act()
    except Exception as error:
        return type(error).__name__
    return "done"


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
    # Where the function is one of Python's, it is the trace of an exception within it.
    traceless = text.startswith(TRACELESS) or "<function " in text and text.endswith(UNSET)
    if came in ("SystemError", "PanicException") and not (traceless and forgives):
        return text, came
    if usual(act) != expected:
        return f"afterwards {usual(act)}, not {expected}", came
    gc.collect()
    if p.alive() != alive or [sys.getrefcount(owner) for owner in owners] != held:
        return "something is kept", came
    return "", came


def failures(tally):
    found, owners = operations()
    few = ["__dlpack__", "__dlpack__, refused", "attribute", "import", "import, capsule", "import, many axes"]
    chosen = list(found) if tally.planned > 1000 else few
    hits = {}
    # What is there before is not looked at again and again.
    gc.collect()
    gc.freeze()
    own = [report.apart(lambda: attempt(lambda: chr(-1), owners, "Python", k, k + 1, "ValueError"))[0] for k in range(20)]
    forgives = TRACELESS in own
    for name in chosen:
        act = found[name]
        for _ in range(3):
            expected = usual(act)
        for allocator in ALLOCATORS:
            for mode in ["one", "all"]:
                untouched = 0
                for k in range(MOST):
                    end = k + 1 if mode == "one" else 0
                    note, came = report.apart(lambda: attempt(act, owners, allocator, k, end, expected, forgives))
                    if note:
                        hits.setdefault((name, allocator, mode), []).append((k, note))
                        tally.bad("")
                    else:
                        tally.good()
                    # Later allocations are those of what comes afterwards.
                    untouched = untouched + 1 if came == expected and not note else 0
                    if untouched == 12:
                        break
    for (name, allocator, mode), bad in hits.items():
        what = "from it on" if mode == "all" else "alone"
        places = ", ".join(str(k) for k, _ in bad[:9])
        tally.note += f"{name}: {bad[0][1]} ({allocator}'s allocation {places} {what}); "


report.main({"failing allocations": (failures, 4_000, 500)})
