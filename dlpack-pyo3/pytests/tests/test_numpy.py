"""NumPy arrays, which are imported without a call of `__dlpack__`."""

import ctypes as c
import gc
import warnings
import weakref

import capi
import dlpack_probe as p
import pytest

np = pytest.importorskip("numpy")

# The version tells how an array was imported: NumPy's own struct has an older one.
OURS, NUMPYS = p.look(bytearray(1))["version"], p.look(capi.Relay(np.ones(1)))["version"]

DTYPES = "? b B h H i I l L q Q e f d F D".split()
LAYOUTS = {
    "packed": lambda a: a,
    "transposed": lambda a: a.T,
    "every other": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, ::-1],
    "a row": lambda a: a[1],
    "an item": lambda a: a[1:2, 2:3],
    "a scalar": lambda a: a[1, 2, ...],
    "empty": lambda a: a[:0],
    "broadcast": lambda a: np.broadcast_to(a, (3, *a.shape)),
    "seven axes": lambda a: a.reshape(2, 1, 2, 1, 3, 1, 1),
    "a view of a view": lambda a: a[1:][:, 1:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_is_imported_as_by_dlpack(dtype, layout):
    """CAP-20: the import has the memory, and is the tensor that `__dlpack__` returns."""
    whole = np.arange(12).reshape(4, 3).astype(dtype)
    a = LAYOUTS[layout](whole)
    ours = p.look(a)
    assert ours["version"] == OURS
    assert ours["ptr"] == a.ctypes.data and ours["readonly"] is not a.flags.writeable
    steps = [stride // a.itemsize for stride in a.strides]
    assert (ours["shape"], ours["strides"]) == (list(a.shape), steps)
    if NUMPYS is None and not a.flags.writeable:
        # NumPy before DLPack 1.0 does not export it at all.
        return
    numpys = p.look(capi.Relay(a))
    assert numpys["version"] == NUMPYS
    for key in ["shape", "dtype", "device", "ptr", "copied", "lent", "bytes", "floats"]:
        assert ours[key] == numpys[key], key
    assert NUMPYS is None or ours["readonly"] == numpys["readonly"]
    # The stride of an axis of size 1 is arbitrary.
    assert all(extent < 2 or a.size == 0 or ours["strides"][axis] == numpys["strides"][axis] for axis, extent in enumerate(a.shape))


REFUSED = {
    "a date": lambda: np.zeros(2, "M8[s]"),
    "a difference": lambda: np.zeros(2, "m8[s]"),
    "fields": lambda: np.zeros(2, "i4,f4"),
    "objects": lambda: np.array([None, 1]),
    "text": lambda: np.array(["a", "b"]),
    "bytes": lambda: np.array([b"a", b"b"]),
    "void": lambda: np.zeros(2, "V4"),
    "another order": lambda: np.zeros(2, np.dtype("i4").newbyteorder()),
    "a field": lambda: np.zeros(2, np.dtype("i4,i1", align=False))["f0"],
}
# On other platforms these are doubles.
if np.dtype("g").itemsize > 8:
    REFUSED["long doubles"] = lambda: np.zeros(2, "g")


@pytest.mark.parametrize("why", REFUSED)
def test_arrays_that_numpy_refuses(why):
    """ERR-07: the error is NumPy's own."""
    a = REFUSED[why]()
    told = []
    for thing in [a, capi.Relay(a)]:
        with pytest.raises((BufferError, RuntimeError)) as raised:
            p.take(thing)
        told.append((raised.type, str(raised.value)))
    assert told[0] == told[1]


def test_an_array_that_is_read_only():
    """FLG-03, FLG-09: read-only by the flag of the array, not by that of the memory behind it."""
    a = np.ones(3, "f4")
    assert not p.take(a).readonly
    a.flags.writeable = False
    assert p.take(a).readonly and p.take(a[1:]).readonly


@pytest.mark.parametrize("thread", [True, False])
def test_the_tensor_keeps_the_array(thread):
    """CAP-13, CAP-28: the tensor keeps the array, and releases it on any thread, with or without the GIL."""
    thing = np.ones(1 << 16)
    held = capi.references(thing)
    for _ in range(2):
        p.keep(thing)
    # Two references for each tensor, for the reason in `test_kept_arrays.py`.
    assert capi.references(thing) == held + 4
    p.let_go(thread=thread, detached=True)
    assert capi.references(thing) == held
    p.keep(thing)
    p.let_go(thread=False, detached=False)
    assert capi.references(thing) == held


def test_the_memory_goes_with_the_tensor():
    """CAP-13: the array is released when the tensor is."""
    base = np.ones(4)
    seen, tensor = weakref.ref(base), p.take(base[1:])
    del base
    gc.collect()
    assert seen() is not None
    del tensor
    gc.collect()
    assert seen() is None


def test_shape_and_strides_are_copied():
    """CAP-20: in-place changes of the array's shape do not affect the tensor; writes to its elements do."""
    a = np.arange(6, dtype="f4")
    tensor = p.take(a)
    with warnings.catch_warnings():
        # NumPy has deprecated it.
        warnings.simplefilter("ignore", DeprecationWarning)
        a.shape = (2, 3)
    a[0] = 9
    assert tensor.shape == (6,) and p.look(tensor)["floats"] == [9, 9, 9, 3, 4, 5]


@pytest.mark.skipif(NUMPYS is None, reason="a NumPy from before DLPack 1.0")
@pytest.mark.parametrize("cut", [lambda a: a, lambda a: a[1:], lambda a: a[1:].view(type("Sub", (np.ndarray,), {}))[:].view(np.ndarray)])
def test_memory_that_numpy_has_from_elsewhere(cut):
    """DEV-12: an array that NumPy made from pinned memory is imported as pinned."""
    foreign = capi.Foreign(shape=(6,), device=(3, 0))
    a = cut(np.from_dlpack(foreign))
    assert tuple(a.__dlpack_device__()) == (3, 0)
    tensor = p.take(a)
    assert tensor.device == (3, 0) and p.look(a)["version"] == NUMPYS
    # A capsule of another kind does not name a device.
    memory = (c.c_float * 4)()
    buffer = type("Buffer", (), {"__array_interface__": {"shape": (4,), "typestr": "<f4", "data": (c.addressof(memory), False), "version": 3}})()
    assert p.look(np.asarray(buffer))["version"] == OURS


@pytest.mark.skipif(NUMPYS is None, reason="a NumPy from before DLPack 1.0")
def test_subclasses_of_ndarray_are_called():
    """XAP-12: `__dlpack__` of a subclass may export something else, so it is called."""
    asked = []

    class Derived(np.ndarray):
        def __dlpack__(self, **request):
            asked.append(request)
            return super().__dlpack__(**request)

    derived = np.ones(3, "f4").view(Derived)
    assert p.look(derived)["version"] == NUMPYS
    assert asked == [{"max_version": OURS}]


def test_numpy_imported_after_the_first_tensor(script):
    script(
        f"""
import sys, array
import dlpack_probe as p
assert p.take(array.array("i", [1, 2])).shape == (2,)
assert "numpy" not in sys.modules
import numpy
assert p.look(numpy.ones(3))["version"] == {OURS}
"""
    )


@pytest.mark.parametrize("version", [0x1000009, 0x2000000, 0x3000000, 0])
def test_a_numpy_of_another_abi(script, version):
    """Structs of an unknown NumPy ABI are not read: `__dlpack__` is called instead."""
    known = version in (0x1000009, 0x2000000)
    script(
        f"""
import ctypes as c, sys, types
import numpy
import capi, dlpack_probe as p
name = next(name for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath") if name in sys.modules)
version = c.CFUNCTYPE(c.c_uint)(lambda: {version})
real = capi.capsule_pointer(sys.modules[name]._ARRAY_API, None)
table = (c.c_void_p * 300).from_buffer_copy((c.c_void_p * 300).from_address(real))
table[0] = c.cast(version, c.c_void_p)
capsule = capi.capsule_new(c.addressof(table), None, None)
sys.modules[name] = types.ModuleType(name)
sys.modules[name]._ARRAY_API = capsule
# The first import of an object that is no NumPy array looks it up.
for _ in range(2):
    assert p.look(numpy.ones(3))["version"] == {OURS if known else NUMPYS}
"""
    )


def test_arrays_and_buffers_at_the_end(script):
    """CAP-14: tensors that are not released before the interpreter exits."""
    script(
        """
import sys, threading, array, numpy
import dlpack_probe as p
things = [numpy.ones(3), numpy.ones(4)[1:], array.array("f", [1, 2]), bytearray(8)]
kept = [p.take(thing) for thing in things]
sys.kept = [p.take(thing) for thing in things]
threading.kept = kept[:2]
for thing in things:
    p.keep(thing)
p.let_go_later(0, 3000)
"""
    )
