"""Imports from buffers, for objects without `__dlpack__`; classes whose exchange table changes; objects that are no arrays."""

import array
import ctypes as c
import gc
import mmap
import sys

import capi
import dlpack_probe as p
import pytest

try:
    import numpy as np
except ImportError:
    np = None

BUFFERS = [
    (lambda: b"\1\2\3", "uint8", (3,), (1,), True),
    (lambda: bytearray(b"\1\2\3"), "uint8", (3,), (1,), False),
    (lambda: bytearray(), "uint8", (0,), None, False),
    (lambda: memoryview(bytearray(12)).cast("h"), "int16", (6,), (1,), False),
    (lambda: memoryview(bytearray(24)).cast("i", (2, 3)), "int32", (2, 3), (3, 1), False),
    (lambda: memoryview(bytearray(12))[::-2], "uint8", (6,), (-2,), False),
    (lambda: memoryview(bytearray(8)).cast("?"), "bool", (8,), (1,), False),
    (lambda: memoryview(bytearray(8)).toreadonly(), "uint8", (8,), (1,), True),
    (lambda: mmap.mmap(-1, 16), "uint8", (16,), (1,), False),
    (lambda: (c.c_float * 3 * 2)(), "float32", (2, 3), (3, 1), False),
    (lambda: (c.c_int16 * 4)(), "int16", (4,), (1,), False),
    (lambda: (c.c_long * 4)(), f"int{8 * c.sizeof(c.c_long)}", (4,), (1,), False),
    (lambda: c.c_double(2.0), "float64", (), (), False),
    *(
        (lambda code=code: array.array(code, [1, 2]), name, (2,), (1,), False)
        for code, name in zip("bBhHiIqQfd", "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split())
    ),
]


class Packed(c.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("x", c.c_float), ("y", c.c_int)]


class Bits(c.Structure):
    _fields_ = [("x", c.c_int, 3), ("y", c.c_int, 5)]


class Either(c.Union):
    _fields_ = [("x", c.c_double), ("y", c.c_int)]


class Short(c.Union):
    _fields_ = [("x", c.c_int16)]


@pytest.mark.parametrize("item", [Packed, Bits, Either, Short])
def test_packed_structs_and_unions_are_no_numbers(item):
    """The format of `ctypes` for them is that of a byte."""
    for thing in item(), (item * 3)():
        assert memoryview(thing).itemsize > 1
        with pytest.raises(BufferError, match="no data type of DLPack is a buffer's"):
            p.take(thing)


if np:
    BUFFERS += [
        (lambda: np.float32(2.0), "float32", (), (), True),
        (lambda: np.complex128(2.0), "complex128", (), (), True),
        (lambda: memoryview(np.ones(3, "F")), "complex64", (3,), (1,), False),
        (lambda: memoryview(np.ones(3, "e")), "float16", (3,), (1,), False),
        (lambda: memoryview(np.ones((2, 1, 2, 1, 2, 1, 1))), "float64", (2, 1, 2, 1, 2, 1, 1), None, False),
    ]


@pytest.mark.parametrize("make, dtype, shape, strides, readonly", BUFFERS)
def test_a_buffer(make, dtype, shape, strides, readonly):
    """CAP-20: an object without DLPack is imported through the buffer protocol."""
    thing = make()
    held = capi.references(thing)
    tensor = p.take(thing)
    assert (tensor.dtype, tensor.shape, tensor.readonly) == (dtype, shape, readonly)
    assert strides is None or tensor.strides == strides
    assert tensor.device == (1, 0)
    view = memoryview(thing)
    bytes_of = p.look(tensor)["bytes"] if dtype == "uint8" else None
    assert bytes_of is None or bytes_of == view.tobytes()
    first = p.first(thing)
    assert first.data_ptr == tensor.data_ptr
    del tensor, first, view
    assert capi.references(thing) == held


def test_a_class_with_the_name_of_the_wrapper_of_buffers():
    """A tensor over the buffer of such an object keeps that object, not memory of ours which the object refers to."""

    class _buffer_wrapper(bytearray):
        __slots__ = ["other"]

    thing = _buffer_wrapper(b"abcd")
    thing.other = memoryview(p.Settings(4).state)
    held = capi.references(thing)
    tensor = p.take(memoryview(thing))
    assert capi.references(thing) == held + 1
    assert p.look(tensor)["bytes"] == b"abcd"
    del tensor
    assert capi.references(thing) == held


@pytest.mark.parametrize("thread", [True, False])
def test_buffers_kept_by_rust(thread):
    """CAP-13, CAP-28: Rust releases buffers without the GIL, on its own thread or on this one."""
    thing = bytearray(8)
    held = capi.references(thing)
    for detached in [True, False][: 1 if thread else 2]:
        p.keep(thing)
        assert capi.references(thing) == held + 1
        p.let_go(thread=thread, detached=detached)
        assert capi.references(thing) == held
        thing.append(4)


def test_a_buffer_is_locked_until_it_is_released():
    """CAP-13: a `bytearray` cannot grow, which would move its memory, while a tensor over it lives."""
    thing = bytearray(b"\1\2\3")
    tensor = p.take(thing)
    thing[0] = 9
    with pytest.raises(BufferError):
        thing.append(4)
    assert p.look(tensor)["bytes"] == b"\x09\2\3"
    again = p.take(tensor)
    del tensor
    with pytest.raises(BufferError):
        thing.append(4)
    del again
    thing.append(4)
    # A failed import keeps nothing.
    odd = array.array("u", "ab")
    with pytest.raises(BufferError):
        p.take(odd)
    odd.append("c")


class Pair(c.Structure):
    _fields_ = [("a", c.c_int), ("b", c.c_float)]


ODD = [
        (lambda: array.array("u", "ab"), '"[uw]" of [24] bytes'),
        (lambda: memoryview(b"ab").cast("c"), '"c" of 1 bytes'),
        (lambda: (Pair * 2)(), r'"T\{.*" of 8 bytes'),
        (lambda: (c.c_void_p * 2)(), '"<?P" of 8 bytes'),
        (lambda: (c.c_int.__ctype_be__ * 2)() if sys.byteorder == "little" else (c.c_int.__ctype_le__ * 2)(), '"[<>][il]" of 4 bytes'),
]
if np:
    ODD += [
        (lambda: memoryview(np.zeros(2, "g")), '"g" of'),
        (lambda: memoryview(np.zeros(2, "i4,i1"))[:0], r'"T\{'),
    ]


@pytest.mark.parametrize("make, text", ODD)
def test_formats_without_a_data_type(make, text):
    """ERR-01: the error names the format."""
    with pytest.raises(BufferError, match=text):
        p.take(make())


def test_strides_between_items(numpy):
    """LAY-14: strides that are not a multiple of the item size are refused, with both numbers."""
    whole = numpy.zeros(4, numpy.dtype([("a", "i4"), ("b", "i1")]))
    with pytest.raises(BufferError, match="axis 0 has a stride of 5 bytes; expected a multiple of the item size, 4 bytes"):
        p.take(memoryview(whole["a"]))
    assert p.take(memoryview(whole["a"][:1])).shape == (1,)


def test_a_released_buffer():
    """ERR-07: the exception of the object is passed on."""
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(ValueError, match="released"):
        p.take(view)
    region = mmap.mmap(-1, 16)
    region.close()
    with pytest.raises(ValueError):
        p.take(region)


def test_buffers_with_copy_and_device():
    """CPY-12, DEV-13: `copy=True` copies the buffer; another device is an error."""
    thing = bytearray(b"\1\2\3")
    assert p.Tensor.from_dlpack(thing, copy=False).data_ptr == p.take(thing).data_ptr
    copy = p.Tensor.from_dlpack(thing, copy=True)
    thing.append(4)
    assert not copy.readonly and p.look(copy)["bytes"] == b"\1\2\3"
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(thing, device=(2, 0))


def test_methods_come_before_the_buffer():
    """CAP-20: an object with both protocols is imported by `__dlpack__`."""
    foreign = capi.Foreign()

    class Both(bytearray):
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **request):
            return foreign.__dlpack__(**request)

    tensor = p.take(Both(4))
    assert tensor.data_ptr == c.addressof(foreign.memory)
    del tensor
    assert foreign.deleted == 1


# -- Classes that change, and objects that are no arrays


def test_tables_that_change():
    """XAP-27: the table of the class at the time of the import is used: set later, inherited, deleted; also that of a class at the
    address of another."""
    foreign = capi.Foreign()

    @c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.c_void_p))
    def from_object(producer, out):
        out[0] = c.addressof(foreign.managed)
        return 0

    table = capi.ExchangeTable()
    table.header.version = capi.DLVersion(1, 3)
    table.managed_tensor_from_py_object_no_sync = c.cast(from_object, c.c_void_p).value

    def by_table(thing):
        before = len(foreign.asked)
        p.take(thing)
        return len(foreign.asked) == before

    for round in range(50):
        base = type("Base", (), {"__dlpack_device__": lambda self: (1, 0), "__dlpack__": lambda self, **request: foreign.__dlpack__(**request)})
        derived = type("Derived", (base,), {})
        things = [base(), derived()]
        if round % 2:
            # A cache would store a miss here.
            assert not any(map(by_table, things))
        base.__dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)
        assert all(map(by_table, things))
        derived.__dlpack_c_exchange_api__ = None
        assert [by_table(thing) for thing in things] == [True, False]
        del base.__dlpack_c_exchange_api__, derived.__dlpack_c_exchange_api__
        assert not any(map(by_table, things))
        things[0].__dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)
        assert not any(map(by_table, things))
        del base, derived, things
        gc.collect()


def test_the_keywords_that_are_passed():
    """NEG-14, STC-11: the importer passes keywords only, and only those that it needs."""
    foreign = capi.Foreign()
    p.take(foreign)
    assert foreign.asked == [{"max_version": (1, 3)}]


NO_ARRAYS = [[1.0, 2.0], None, 7, 2.5, {"a": 1}, object(), "text", p]


@pytest.mark.parametrize("thing", NO_ARRAYS, ids=lambda thing: type(thing).__name__)
def test_objects_that_are_no_arrays(thing):
    """ERR-08: an `AttributeError`, and for an argument a `TypeError` with its name; the text says what was found and what is accepted."""
    text = f"an object of <class '{type(thing).__name__}'> is no array.*buffer.*numpy.asarray"
    with pytest.raises(AttributeError, match=text):
        p.take(thing)
    with pytest.raises(AttributeError, match=text):
        p.Tensor.from_dlpack(thing, copy=True)
    for function, name in [(p.first, "tensor"), (p.take_points, "points")]:
        with pytest.raises(TypeError, match=text) as raised:
            function(thing)
        notes = " ".join(getattr(raised.value, "__notes__", []))
        # PyO3 adds the name as a note. Exceptions have notes from Python 3.11 on.
        assert f"'{name}'" in str(raised.value) + notes or sys.version_info < (3, 11)


def test_half_a_protocol():
    """ERR-08: a producer has both methods; an `AttributeError` that a producer raises is passed on."""
    whole = {"__dlpack_device__": lambda self: (1, 0), "__dlpack__": lambda self, **request: self.missing}
    for name in whole:
        half = type("Half", (), {name: whole[name]})()
        with pytest.raises(AttributeError, match="is no array"):
            p.take(half)
        with pytest.raises(AttributeError, match="is no array"):
            p.Tensor.from_dlpack(half, device=(1, 0))
    with pytest.raises(AttributeError, match="'missing'"):
        p.take(type("Whole", (), whole)())
    lost = whole | {"__dlpack_device__": lambda self: self.lost}
    with pytest.raises(AttributeError, match="'lost'"):
        p.take(type("Lost", (), lost)())
    # Methods of an instance are accepted.
    foreign, thing = capi.Foreign(), type("Plain", (), {})()
    thing.__dlpack__, thing.__dlpack_device__ = foreign.__dlpack__, foreign.__dlpack_device__
    assert p.look(thing)["floats"]
