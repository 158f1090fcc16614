"""Operations whose allocations fail, one after another: each is a MemoryError or succeeds without the allocation, and nothing is kept."""

import sys

import pytest

OPERATIONS = """
import array, copy, gc, operator, pickle, sys
import _testcapi
import capi
import dlpack_probe as p
try:
    import numpy as np
except ImportError:
    np = None

class Unprintable(type):
    def __repr__(cls):
        raise ValueError

# For the text of such a class PyO3 needs a string, which it keeps. On Python 3.10 it panics if the allocation fails.
report, sys.unraisablehook = sys.unraisablehook, lambda _: None
p.has_class_text(Unprintable("Odd", (), {})())
sys.unraisablehook = report

# Numbers that Python does not have preallocated.
wide = p.Tensor._restore(bytes(range(32)), (0, 128, 1, False), (2,))
wider = p.Tensor._restore(bytes(range(100, 132)), (1, 128, 1, False), (2,))
kinds = {
    "int64": p.take(array.array("q", [2**40, -(2**50)])),
    "uint64": p.take(array.array("Q", [2**63 + 5, 7])),
    "int128": wide,
    "uint128": wider,
    "float32": p.take(p.Probe([2, 3])),
    "complex128": p.take(p.Probe([2, 2], "complex128")),
    "bool": p.take(p.Probe([2, 2], "bool")),
    "lanes": p.take(p.Probe([2], "float32", lanes=2)),
}
ones = {name: tensor[(0,) * len(tensor.shape)] for name, tensor in kinds.items() if name != "lanes"}
rows, plain, odd = kinds["float32"], kinds["int64"], p.take(p.Probe([2], "float8_e4m3"))
picture, canvas, settings = p.Picture(2, 3), p.Canvas(4), p.Settings(2)
buffered, shared, own, iterable = p.Buffered([0.0, 1.0]), p.WProbe([2, 2]), p.Own([1.0]), p.Rows([1.0, 2.0])
elsewhere, outside, lent = p.Elsewhere(10), p.Probe([9], items=3), p.Exclusive([1.0])
held = lent.__dlpack__(max_version=(1, 0))
mask, state, matrix = array.array("b", [1] * 6), array.array("d", [1.0, 2.0]), p.take(p.Probe([2, 2], "int32"))
bools = memoryview(mask).cast("B").cast("?", (2, 3))

def use(iterator):
    for part in iterator:
        pass

def strings(it):
    return repr(it), it.dtype

def facts(it):
    return it.shape, it.strides, it.ndim, it.device, it.nbytes, it.readonly, it.data_ptr

found = {f"tolist of {name}": lambda it=it: it.tolist() for name, it in kinds.items()}
found |= {f"item of {name}": lambda it=it: it.item() for name, it in ones.items()}
found |= {
    "item of several": lambda: rows.item(),
    "float": lambda: float(ones["float32"]),
    "int": lambda: int(ones["int64"]),
    "complex": lambda: complex(ones["complex128"]),
    "bool": lambda: bool(ones["int128"]),
    "index": lambda: operator.index(ones["uint64"]),
    "index of a float": lambda: operator.index(ones["float32"]),
    "len": lambda: len(rows),
    "len without axes": lambda: len(ones["float32"]),
    "==": lambda: rows == plain,
    "strings": lambda: strings(rows),
    "facts": lambda: facts(rows),
    "list": lambda: list(rows),
    "iteration": lambda: use(rows),
    "iteration of an object": lambda: use(iterable),
    "iteration without axes": lambda: iter(ones["float32"]),
    "t[i]": lambda: rows[1],
    "t[i, j]": lambda: rows[1, -1],
    "t[:]": lambda: rows[-1:],
    "t[::-1, None]": lambda: rows[::-1, None, ..., ::2],
    "t[i] out of range": lambda: rows[7],
    "t['a']": lambda: rows["a"],
    "t[i, j, k]": lambda: rows[0, 0, 0],
    "copy": lambda: copy.copy(rows),
    "memoryview": lambda: memoryview(buffered).release(),
    "memoryview of a tensor": lambda: memoryview(rows),
    "memoryview, exclusive": lambda it=p.Exclusive([1.0]): memoryview(it),
    "memoryview, refused: borrowed": lambda: memoryview(lent),
    "memoryview, refused: out of bounds": lambda: memoryview(outside),
    "memoryview, refused: device": lambda: memoryview(elsewhere),
    "memoryview, refused: format": lambda: memoryview(odd),
    "bytes": lambda: bytes(own),
    "attribute": lambda: settings.state,
    "set": lambda: setattr(settings, "state", state),
    "set, copied": lambda: setattr(settings, "mask", bools),
    "set, tensor": lambda: setattr(settings, "matrix", matrix),
    "set, its own": lambda: setattr(settings, "state", settings.state),
    "set, None": lambda: setattr(settings, "weights", None),
    "set, refused: type": lambda: setattr(settings, "state", mask),
    "set, refused: shape": lambda: setattr(settings, "mask", mask),
    "set, refused: None": lambda: setattr(settings, "mask", None),
    "set, refused: no array": lambda: setattr(settings, "mask", 7),
    "del": lambda: delattr(settings, "mask"),
}
for name, it in {"tensor": rows, "picture": picture, "canvas": canvas, "strided": rows[:, ::-1]}.items():
    for protocol in 2, 4, 5:
        found[f"reduce of a {name}, {protocol}"] = lambda it=it, protocol=protocol: it.__reduce_ex__(protocol)
    make, values = it.__reduce_ex__(5)
    found[f"restore of a {name}"] = lambda make=make, values=values: make(*values)
    found[f"dumps of a {name}"] = lambda it=it: pickle.dumps(it, 5)
    found[f"loads of a {name}"] = lambda data=pickle.dumps(it, 5): pickle.loads(data)
found["reduce of a derived class"] = lambda it=type("Derived", (p.Picture,), {})(1, 1): it.__reduce_ex__(5)
found["restore of nonsense"] = lambda: p.Tensor._restore(b"abc", (2, 32, 1, False), (2,))
found["restore of too many axes"] = lambda: p.Tensor._restore(b"", (2, 32, 1, False), (1,) * 65)
if np:
    found |= {
        "numpy.asarray": lambda: np.asarray(buffered),
        "numpy.asarray, another type": lambda: np.asarray(buffered, "float64"),
        "numpy.asarray, refused": lambda: np.asarray(lent),
        "numpy.asarray, device": lambda: np.asarray(elsewhere),
        "__array__": lambda: shared.__array__(),
        "numpy.from_dlpack": lambda: np.from_dlpack(rows),
        "numpy()": lambda: rows.numpy(),
        "import of NumPy's": lambda it=np.arange(3.0): p.take(it),
        "set, NumPy's": lambda it=np.arange(2.0): setattr(settings, "state", it),
        "set, refused: mask": lambda it=np.ma.array([1.0, 2.0]): setattr(settings, "state", it),
        "set, refused: strides": lambda it=np.zeros(2, "u1, f8")["f1"]: setattr(settings, "state", it),
    }
owners = [*kinds.values(), *ones.values(), odd, picture, canvas, settings, buffered, shared, own, iterable]
owners += [elsewhere, outside, lent, mask, state, matrix]

def outcome(act, before=lambda: None, after=lambda: None):
    try:
        before()
        act()
        after()
    except BaseException as error:
        after()
        # The exception itself is not returned, because its traceback keeps objects.
        return type(error).__name__, str(error)
    return "done", ""

def leaks_in_python():
    # CPython 3.12 and 3.13 never release the buffer of a `__buffer__` if they cannot allocate the object around it.
    class Plain:
        def __buffer__(self, flags):
            return memoryview(self.bytes)

    plain = Plain()
    for k in range(20):
        plain.bytes = bytearray(1)
        try:
            _testcapi.set_nomemory(k, k + 1)
            memoryview(plain)
        except (MemoryError, TypeError):
            pass
        finally:
            _testcapi.remove_mem_hooks()
        gc.collect()
        try:
            plain.bytes.append(1)
        except BufferError:
            return True
    return False

def kind_of(found):
    # Errors of CPython itself if it cannot allocate a frame of the traceback, and those of pickle.
    others = "error return without exception set", "Can't pickle <built-in function getattr>: import of module"
    return "MemoryError" if found[1].startswith(others) else found[0]
"""


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="PyO3 asks Python for the name from 3.11 on")
def test_pyo3_without_memory_for_the_name_of_a_class(script):
    """A control: why `OPERATIONS` lets PyO3 make a string first. No code of ours is called."""
    pytest.importorskip("_testcapi")
    ended = script("import _testcapi, dlpack_probe as p\n_testcapi.set_nomemory(0)\np.has_class_text(1)", status=None)
    assert ended.status != 0 and "PyObject pointer is null" in ended.err, ended


@pytest.mark.parametrize("whose", ["python", "rust"])
@pytest.mark.parametrize("fails", ["one", "all"])
@pytest.mark.usefixtures("memory_can_fail")
def test_operations_without_memory(script, whose, fails):
    """Own faults 9, 14: a MemoryError or the usual result; no panic, no crash, nothing kept."""
    ended = script(
        OPERATIONS
        + f"whose, fails = {whose!r}, {fails!r}"
        + """
start = p.set_nomemory_in_rust if whose == "rust" else _testcapi.set_nomemory
if whose == "rust":
    # Older versions of PyO3 abort if they cannot allocate the error of an argument.
    del found["set, refused: no array"]
keeps_buffers = whose == "python" and leaks_in_python()
stop = p.remove_nomemory_in_rust if whose == "rust" else _testcapi.remove_mem_hooks

for act in found.values():
    for _ in range(3):
        outcome(act)
gc.collect()
gc.freeze()
failed, wrong = 0, {}
for name, act in found.items():
    expected = kind_of(outcome(act))
    gc.collect()
    before = p.alive(), [sys.getrefcount(owner) for owner in owners]
    k = well = 0
    # Some failed allocations have no effect, so the loop ends after several successes in a row.
    while well < 12 and k < 500:
        came = outcome(act, lambda: start(k, k + 1 if fails == "one" else 0), stop)
        gc.collect()
        if kind_of(came) not in (expected, "MemoryError"):
            wrong.setdefault(name, []).append((k, came))
        if (p.alive(), [sys.getrefcount(owner) for owner in owners]) != before:
            wrong.setdefault(name, []).append((k, "something is kept"))
            before = p.alive(), [sys.getrefcount(owner) for owner in owners]
        failed += kind_of(came) == "MemoryError"
        well = 0 if kind_of(came) != expected else well + 1
        k += 1
    if kind_of(outcome(act)) != expected:
        wrong.setdefault(name, []).append("is another afterwards")
if keeps_buffers:
    # One leak for each operation, which then also keeps an exclusive borrow.
    of_python = [name for name, places in wrong.items() if [place[1] for place in places] == ["something is kept"] or "exclusive" in name]
    wrong = {name: places for name, places in wrong.items() if name not in of_python}
for name, places in wrong.items():
    print(name, *places[:6], sep="\\n    ")
assert not wrong, len(wrong)
print(failed)
""",
        status=None,
        RUST_BACKTRACE="0",
        DLPACK_LIBCUDA="none",
    )
    # Python prints unraisable exceptions to stderr, and Rust each panic.
    assert ended.status == 0 and "panicked" not in ended.err, ended
    assert int(ended.out) > (100 if whose == "rust" else 300)
