"""Results that are NumPy arrays: `Numpy<T>`, over any tensor, without a copy."""

import ctypes as c
import copy
import gc

import capi
import dlpack_probe as p
import pytest


def test_an_array_over_a_value_of_rust(numpy):
    """CAP-13: the array is writable and not a copy, and the value is dropped with the last view of it."""
    alive = p.alive()
    for length in [8, 0, 20000]:
        array, address = p.ramp(length)
        assert type(array) is numpy.ndarray and array.shape == (length // 2, 2) and array.dtype == "f4"
        assert array.size == 0 or array.ctypes.data == address
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
        assert (array.ravel() == numpy.arange(length)).all()
        array[:1] = 9
        last = array[-1:]
        del array
        gc.collect()
        assert p.alive() == alive + 1
        del last
        assert p.alive() == alive
        assert [attached for _, attached in p.drops()] in ([True], [None])


def test_an_array_of_ndarray(numpy):
    """LAY-01: strides of any sign."""
    array = p.matrix()
    assert array.dtype == "f8" and array.tolist() == [[4, 5], [2, 3], [0, 1]]
    assert array.strides == (-8, 24) and array.flags.writeable


DTYPES = "? b B h H i I l L q Q e f d F D".split()
LAYOUTS = {
    "packed": lambda a: a,
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1, ::-2],
    "a scalar": lambda a: a[1, 2, ...],
    "empty": lambda a: a[:0],
    "broadcast": lambda a: a[None, :, None].repeat(1, 0)[..., :1],
    "six axes": lambda a: a.reshape(2, 1, 2, 1, 3, 1),
    "seven axes": lambda a: a.reshape(2, 1, 2, 1, 3, 1, 1),
    "many axes": lambda a: a[(None,) * 30],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trips(numpy, dtype, layout):
    """LAY-01, LAY-05: each data type of NumPy, in each layout, over the same memory."""
    whole = numpy.arange(12).reshape(4, 3).astype(dtype)
    a = LAYOUTS[layout](whole)
    b = p.to_numpy(a)
    assert (b.dtype, b.shape) == (a.dtype, a.shape)
    # LAY-05: an empty tensor has no address.
    assert a.size == 0 or b.ctypes.data == a.ctypes.data
    assert a.size == 0 or all(n < 2 or s == t for n, s, t in zip(a.shape, a.strides, b.strides))
    assert (a == b).all() and b.flags.writeable is a.flags.writeable
    a.flags.writeable = False
    assert not p.to_numpy(a).flags.writeable


def test_a_scalar_is_written(numpy):
    """A tensor without axes becomes an array without axes, not a number."""
    a = numpy.zeros((), "f8")
    p.to_numpy(a)[...] = 3
    assert a == 3


def test_arrays_over_foreign_tensors(numpy):
    """CAP-13: read-only and legacy tensors become read-only arrays; one without strides is contiguous; all are released once."""
    for options in [{}, {"flags": 1}, {"legacy": True}, {"strides": None}, {"deleter": False}]:
        foreign = capi.Foreign(**options)
        array = p.to_numpy(foreign)
        assert array.tolist() == [[1, 2, 3], [4, 5, 6]] and array.ctypes.data == c.addressof(foreign.memory)
        assert array.flags.writeable is not bool(options.keys() & {"flags", "legacy"})
        del array
        gc.collect()
        assert foreign.deleted == options.get("deleter", True)


def test_data_that_is_not_aligned(numpy):
    """The array is flagged as misaligned."""
    foreign = capi.Foreign(shape=(5,), byte_offset=2)
    array = p.to_numpy(foreign)
    assert not array.flags.aligned
    assert array.tobytes() == foreign.memory.raw[2:22]


# By the codes of DLPack: bfloat16, floats of eight bits, and of six and four bits with one item a byte.
ML_DTYPES = [
    (4, 16, "bfloat16"), (7, 8, "float8_e3m4"), (8, 8, "float8_e4m3"), (9, 8, "float8_e4m3b11fnuz"),
    (10, 8, "float8_e4m3fn"), (11, 8, "float8_e4m3fnuz"), (12, 8, "float8_e5m2"), (13, 8, "float8_e5m2fnuz"),
    (14, 8, "float8_e8m0fnu"), (15, 6, "float6_e2m3fn"), (16, 6, "float6_e3m2fn"), (17, 4, "float4_e2m1fn"),
]


@pytest.mark.parametrize("code, bits, name", ML_DTYPES)
def test_types_that_numpy_has_by_another_package(numpy, code, bits, name):
    """DTY-01: data types of `ml_dtypes`, over the same bytes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    padded = 4 if bits < 8 else 0
    foreign = capi.Foreign(raw=bytes(range(8)), shape=(2, 2), dtype=(code, bits, 1), flags=padded)
    array = p.to_numpy(foreign)
    assert array.dtype == getattr(ml_dtypes, name) and array.shape == (2, 2)
    assert array.tobytes() == bytes(range(4 * array.itemsize)) and array.ctypes.data == c.addressof(foreign.memory)
    array.astype("f4")
    del array
    if padded:
        with pytest.raises(BufferError, match=f"NumPy has no data type for {name}$"):
            p.to_numpy(capi.Foreign(raw=bytes(8), shape=(2, 2), dtype=(code, bits, 1)))


def test_types_that_numpy_does_not_have(numpy):
    """DTY-08: data types that NumPy does not have are refused, and the tensor is released."""
    for dtype in [(2, 32, 4), (0, 128, 1), (3, 64, 1)]:
        foreign = capi.Foreign(raw=bytes(64), shape=(2,), dtype=dtype)
        with pytest.raises(BufferError, match="NumPy has no data type for"):
            p.to_numpy(foreign)
        gc.collect()
        assert foreign.deleted == 1


def test_more_axes_than_numpy_has(numpy):
    """NumPy 1 has at most 32 axes, NumPy 2 has 64."""
    most = 32 if numpy.__version__ < "2" else 64
    assert p.to_numpy(capi.Foreign(shape=(1,) * 32)).ndim == 32
    foreign = capi.Foreign(shape=(1,) * 64)
    if most == 64:
        assert p.to_numpy(foreign).ndim == 64
    else:
        with pytest.raises(BufferError, match="supports at most 32 axes, and the tensor has 64"):
            p.to_numpy(foreign)


@pytest.mark.parametrize("device", [(2, 1), (10, 0), (8, 0)])
def test_memory_that_the_cpu_cannot_read(numpy, device):
    """ERR-01: the error names the device, and what to call."""
    foreign = capi.Foreign(device=device)
    with pytest.raises(TypeError, match=r'is on \w+:\d.*`numpy.from_dlpack\(x, device="cpu"\)`.*torch.from_dlpack'):
        p.to_numpy(foreign)
    gc.collect()
    assert foreign.deleted == 1


def test_the_base_of_an_array_is_no_tensor(numpy):
    """CAP-22: the object that keeps the memory of an array is not a tensor that can be imported."""
    array = p.computed()
    assert type(array.base).__name__ == "Value"
    with pytest.raises(AttributeError, match="Value.* is no array"):
        p.take(array.base)


def test_the_object_behind_an_array(numpy):
    """It keeps the value; its class can neither be instantiated nor subclassed."""
    before = p.alive()
    array, address = p.ramp(8)
    base = array.base
    assert (type(base).__name__, array.__array_interface__["data"][0]) == ("Value", address)
    for make in [type(base), lambda: object.__new__(type(base)), lambda: type("Derived", (type(base),), {})]:
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError):
        copy.copy(base)
    part = array[2:, ::-1]
    del array, base
    gc.collect()
    assert (p.alive() - before, part.tolist()) == (1, [[5, 4], [7, 6]])
    del part
    assert p.alive() == before


def test_an_array_over_a_value_that_holds_its_items(numpy):
    """The items are aligned as their type requires, for any number of arrays."""
    before = p.alive()
    arrays = [p.inline(False) for _ in range(100)]
    for array in arrays:
        assert array.__array_interface__["data"][0] % 256 == 0
        assert (array.tolist(), array.flags.writeable) == ([1.0, 2.0, 3.0, 4.0], True)
        array[:] = 0
    del array
    assert p.alive() == before + 100
    arrays.clear()
    assert p.alive() == before


def test_a_value_behind_an_array_that_panics_in_drop(numpy, capfd):
    """ERR-06, CAP-17: the panic is not propagated, and a pending exception stays."""
    p.inline(True)
    with pytest.raises(ZeroDivisionError):
        _ = [p.inline(True), 1 / 0]
    gc.collect()
    assert capfd.readouterr().err.count("panic on purpose") == 2


def test_a_value_that_is_computed_for_its_array(numpy):
    first, second = p.computed(), p.computed()
    assert (second - first).tolist() == [1, 1, 1], "described twice"


def test_without_numpy(script):
    """The error says what to install."""
    script(
        """
import sys
sys.modules["numpy"] = None
import dlpack_probe as p
try:
    p.ramp(8)
except ImportError as error:
    assert "`numpy` is not installed: `pip install numpy`" in str(error), error
else:
    raise AssertionError
assert p.alive() == 0
"""
    )


def test_numpy_is_imported_if_it_is_not(script, numpy):
    """The module imports NumPy if it is not imported yet."""
    script(
        """
import sys
import dlpack_probe as p
assert "numpy" not in sys.modules
array, _ = p.ramp(8)
assert type(array) is sys.modules["numpy"].ndarray
"""
    )


def test_without_the_other_package(script, numpy):
    """The error says what to install, and why."""
    script(
        """
import sys
sys.modules["ml_dtypes"] = None
import capi
import dlpack_probe as p
try:
    p.to_numpy(capi.Foreign(raw=bytes(8), shape=(2, 2), dtype=(4, 16, 1)))
except ImportError as error:
    assert "has no bfloat16, and `ml_dtypes` is not installed: `pip install ml_dtypes`" in str(error), error
else:
    raise AssertionError
"""
    )


def test_a_read_only_array_stays_read_only(numpy):
    """NumPy asks the base of an array whether it is writable. Python code cannot change the answer of our classes."""
    tensor = p.take(b"abc")
    for array in tensor.numpy(), numpy.asarray(tensor):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    for made in type(tensor.numpy().base), type(memoryview(tensor).obj):
        with pytest.raises(TypeError, match="immutable type"):
            made.__buffer__ = lambda self, flags: memoryview(bytearray(3))
