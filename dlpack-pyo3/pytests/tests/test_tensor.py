"""A `Tensor` in Python: numbers, truth, comparison, and arrays of libraries."""

import ctypes
import operator
import os
import random
import struct
import sys
import types

import capi
import dlpack_probe as p
import pytest

# The traceback of a failed test may keep a tensor of this producer.
ON_GPU = capi.Foreign(device=(2, 0))
CASES = int(os.environ.get("DLPACK_CASES", "1500"))
KINDS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()


# -- numbers ------------------------------------------------------------------------------------


def test_lists_are_those_of_numpy(numpy):
    """Any type, any bits, any shape and strides: the same numbers of the same classes as NumPy's."""
    dice = random.Random(2)
    for _ in range(CASES):
        dtype, shape = numpy.dtype(dice.choice(KINDS)), [dice.choice([0, 1, 2, 3]) for _ in range(dice.randrange(4))]
        items = max(1, numpy.prod(shape, dtype=int))
        data = dice.randbytes(items * dtype.itemsize) if dtype != bool else bytes(dice.choices([0, 1], k=items))
        array = numpy.frombuffer(data, dtype)[: numpy.prod(shape, dtype=int)].reshape(shape)
        array = array.transpose(dice.sample(range(len(shape)), len(shape)))
        array = array[tuple(slice(None, None, dice.choice([1, 2, -1])) for _ in array.shape)]
        if dice.random() < 0.2:
            array = numpy.broadcast_to(array, (2, *array.shape))
        tensor = p.take(array)
        # Compared as text, because NaN is not equal to itself.
        assert repr(tensor.tolist()) == repr(array.tolist()), (dtype, array.shape)
        if array.size == 1:
            assert repr(tensor.item()) == repr(array.item())
            assert bool(tensor) is bool(array)


def test_any_byte_but_zero_is_true():
    """A `bool` that other code wrote may have any byte; `bool(x)` and `item` agree with the list."""
    tensor = p.take(memoryview(bytearray([0, 1, 2, 128, 255])).cast("?"))
    expected = [False, True, True, True, True]
    assert tensor.tolist() == expected
    assert [part.item() for part in tensor] == expected
    assert [bool(part) for part in tensor] == expected


def test_numbers_that_numpy_does_not_have(numpy):
    """Wide integers, short floats and complex numbers, items of several lanes, small floats of one a byte."""

    def of(data, dtype, shape=None, lanes=1, padded=False):
        tensor = p.take(p.WProbe(shape or [len(data)], dtype, lanes=lanes, padded=padded))
        ctypes.memmove(tensor.data_ptr, data, len(data))
        return tensor

    wide = b"".join(number.to_bytes(16, "little", signed=True) for number in (-(2**127), -1, 2**100))
    assert of(wide, "int128", [3]).tolist() == [-(2**127), -1, 2**100]
    assert of(wide, "uint128", [3]).tolist() == [2**127, 2**128 - 1, 2**100]
    assert of(struct.pack("<3H", 0x3F80, 0xC049, 0x0001), "bfloat16", [3]).tolist() == [1.0, -3.140625, 2.0**-133]
    assert of(struct.pack("<4e", 1.5, -2, 65504, 2**-24), "complex32", [2]).tolist() == [1.5 - 2j, 65504 + 2**-24 * 1j]
    lanes = of(struct.pack("<4f", 1, 2, 3, 4), "float32", [2], lanes=2)
    assert lanes.tolist() == [[1.0, 2.0], [3.0, 4.0]] and lanes[1].tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match="one element, found 2"):
        lanes[1].item()
    assert of(bytes([0x38, 0xB8, 0x01, 0x7E]), "float8_e4m3fn").tolist() == [1.0, -1.0, 2.0**-9, 448.0]
    assert of(bytes([2, 7, 15]), "float4_e2m1fn", padded=True).tolist() == [1.0, 6.0, -6.0]
    with pytest.raises(BufferError, match="expected dtype float4_e2m1fn, one a byte, found float4_e2m1fn"):
        p.take(p.Probe([4], "float4_e2m1fn")).tolist()


def test_lists_of_device_memory():
    """The error says that the CPU cannot read the memory."""
    tensor = p.take(ON_GPU)
    with pytest.raises(BufferError, match="is on cuda:0, where the CPU cannot read it"):
        tensor.tolist()


def test_one_number(numpy):
    """`item`, `bool`, `float`, `int`, `complex` and the index of a sequence, for one element with any number of axes."""
    one = p.take(numpy.array([[3]], "int16"))
    assert (one.item(), bool(one), float(one), int(one), complex(one)) == (3, True, 3.0, 3, 3 + 0j)
    assert type(float(one)) is float and type(int(one)) is int
    assert operator.index(one[0, 0]) == 3 and "abcdef"[one[0, 0]] == "d"
    half = p.take(numpy.array(2.5, "float16"))
    assert (half.item(), int(half), float(half)) == (2.5, 2, 2.5)
    assert p.take(numpy.array(1 + 2j)).item() == complex(p.take(numpy.array(1 + 2j))) == 1 + 2j
    assert not p.take(numpy.array([False])) and not p.take(numpy.array(0.0))
    assert p.take(numpy.array(float("nan")))
    for not_index in (one, half, p.take(numpy.array(True)), p.take(numpy.array([1]))):
        with pytest.raises(TypeError, match="only an integer tensor without axes is an index"):
            operator.index(not_index)
    with pytest.raises(TypeError, match="expected an index of integers"):
        one[p.take(numpy.array(True))]
    with pytest.raises(TypeError):
        float(p.take(numpy.array(1j)))
    with pytest.raises(ValueError):
        int(p.take(numpy.array(float("nan"))))


def test_none_or_several_numbers(numpy):
    """NumPy raises the same classes; the text names `tolist`."""
    for array in (numpy.zeros(0), numpy.zeros(2), numpy.zeros((3, 0)), numpy.zeros((2, 3))):
        tensor = p.take(array)
        for act, error in [(p.Tensor.item, ValueError), (bool, ValueError), (float, TypeError), (int, TypeError), (complex, TypeError), (operator.index, TypeError)]:
            with pytest.raises(error, match=rf"one element, found {array.size} elements; `tolist\(\)` returns|integer tensor"):
                act(tensor)


# -- comparison ---------------------------------------------------------------------------------


def test_a_tensor_is_not_compared(numpy):
    """Neither identity nor elements would be what users expect, so `==` raises, and a tensor is not hashable."""
    array = numpy.arange(3)
    tensor = p.take(array)
    for other in (tensor, p.take(array), 1, None, [0, 1, 2]):
        for act in (operator.eq, operator.ne):
            with pytest.raises(TypeError, match=r"no `==`.*tensor.numpy\(\) == other.*`is`"):
                act(tensor, other)
    with pytest.raises(TypeError, match="'<' not supported"):
        tensor < tensor
    with pytest.raises(TypeError, match="unhashable"):
        hash(tensor)
    assert tensor in [tensor]
    assert (array == tensor).tolist() == [True] * 3 and (array != tensor).tolist() == [False] * 3


# -- arrays of libraries ------------------------------------------------------------------------


def test_methods_named_after_libraries(script):
    """Each method passes the tensor itself to the library's `from_dlpack`; an error names a missing library."""
    script("""
import sys, types
import dlpack_probe as p
tensor = p.libraries.vector([1, 2])
for name in ["torch", "jax", "cupy"]:
    sys.modules[name] = None
    try:
        getattr(tensor, name)()
    except ModuleNotFoundError as error:
        assert f"pip install {name}" in str(error), error
    else:
        raise AssertionError(name)
    del sys.modules[name]
for name in ["torch", "jax", "jax.dlpack", "cupy"]:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    module.from_dlpack = lambda given, name=name: (name, given)
for name, where in [("torch", "torch"), ("jax", "jax.dlpack"), ("cupy", "cupy")]:
    found = getattr(tensor, name)()
    assert found[0] == where and found[1] is tensor
""")


def test_torch_sees_the_memory():
    torch = pytest.importorskip("torch")
    tensor = p.libraries.points([1, 2, 3, 4, 5, 6], (2, 3))
    array = tensor.torch()
    assert type(array) is torch.Tensor and array.data_ptr() == tensor.data_ptr
    array *= 2
    assert tensor.tolist() == [[2, 4, 6], [8, 10, 12]]
    part = tensor[1, ::2].torch()
    del tensor, array
    assert part.tolist() == [8, 12]


def test_jax_sees_the_memory():
    jax = pytest.importorskip("jax")
    tensor = p.libraries.managed(p.libraries.jax(4))
    for array in tensor.jax(), jax.numpy.asarray(tensor), jax.numpy.array(tensor):
        assert isinstance(array, jax.Array) and array.tolist() == [0, 1, 2, 3]
