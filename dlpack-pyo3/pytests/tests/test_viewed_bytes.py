"""The bytes of any array as an argument, views as results, and a class whose data is a tensor."""

import array
import ctypes
import gc

import numpy as np
import pytest
from dlpack_probe import Titled, bytes_of, copy_bytes, give_view, give_views, packet, reverse_bytes, views


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.complex128),
        np.array(True),
        np.zeros((0, 3), np.int16),
        np.arange(4, dtype=np.uint8),
        np.ones((2, 1, 2), np.float16),
        b"bytes",
        bytearray(b"more"),
        memoryview(b"view"),
        array.array("d", [1.0, 2.0]),
        np.arange(6, dtype=np.uint16)[2:],
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')}",
)
def test_the_bytes_of_any_contiguous_array(x):
    expected = x.tobytes() if hasattr(x, "tobytes") else bytes(x)
    assert bytes(bytes_of(x)) == expected


def test_strided_arrays_have_no_bytes_in_a_row():
    x = np.zeros((2, 3), np.float32)
    for part in x.T, x[:, 1:], x[::-1], np.broadcast_to(x[:1], (2, 3)):
        with pytest.raises(TypeError, match=r"expected an array of any data type and shape, contiguous in row-major order, "
                           r"found one of shape \(.*; pass numpy.ascontiguousarray\(x\)"):
            bytes_of(part)
    assert len(bytes_of(np.ascontiguousarray(x.T))) == 24


def test_what_is_no_array_is_refused():
    for x in [1.0], "text", 3, None:
        with pytest.raises(TypeError, match="expected an array of any data type and shape, found <class"):
            bytes_of(x)
    others = np.arange(4, dtype=">i4")
    for x in np.array(["2020-01-01"], "M8[D]"), others, others[::2], np.array(3, ">i4"), np.array(["text"]):
        with pytest.raises(TypeError, match=r"expected an array of any data type and shape, .*; pass numpy\.ascontiguousarray\(x\)\.view\('u1'\)"):
            bytes_of(x)
        # The expression that the error suggests.
        assert bytes(bytes_of(np.ascontiguousarray(x).view("u1"))) == x.tobytes()
    for x in np.array([None]), np.zeros(2, [("n", "i4"), ("o", "O")]):
        with pytest.raises(TypeError, match="whose bytes are references to Python objects"):
            bytes_of(x)


class Point(ctypes.Structure):
    _fields_ = [("OBJECTS", ctypes.c_int), ("y", ctypes.c_char)]


@pytest.mark.parametrize(
    "x",
    [
        ctypes.create_string_buffer(b"ab"),
        memoryview(b"ab").cast("c"),
        memoryview(b"abcdef").cast("c", (2, 3)),
        array.array("u", "ab"),
        (Point * 2)((1, b"x"), (2, b"y")),
        np.void(b"abc"),
        (ctypes.c_double.__ctype_be__ * 2)(1, 2),
    ],
    ids=lambda x: memoryview(x).format,
)
def test_buffers_whose_format_is_no_data_type(x):
    """What the buffer protocol gives for `PyBUF_SIMPLE`."""
    data = bytes(x)
    assert bytes(bytes_of(x)) == data
    if memoryview(x).readonly:
        with pytest.raises(TypeError, match="read-only"):
            reverse_bytes(x)
    else:
        reverse_bytes(x)
        assert bytes(x) == data[::-1]
    with pytest.raises(TypeError, match=r"expected an array of float64 of shape \(\.\.\), found <class '.*'>: no data type of DLPack is a "
                       "buffer's \".*\" of [0-9]+ bytes") as raised:
        views.total(x)
    # PyO3 0.28 makes an error of its own for the name of the argument, with the same cause.
    assert isinstance(raised.value.__cause__, BufferError)


def test_buffers_whose_bytes_are_not_viewed():
    for x in memoryview(b"abcd").cast("c")[::2], memoryview(b"abcd").cast("c")[::-1]:
        with pytest.raises(TypeError, match=r"expected an array of any data type and shape, found <class 'memoryview'>: no data type of"):
            bytes_of(x)
    # A write to a reference would corrupt the interpreter.
    Named = type("Named", (ctypes.Structure,), {"_fields_": [("x", ctypes.c_int), ("name", ctypes.py_object)]})
    # The colon is that of a name, not the one behind a name.
    Colon = type("Colon", (ctypes.Structure,), {"_fields_": [("x:y", ctypes.c_double), ("name", ctypes.py_object)]})
    objects = np.zeros(2, object), np.zeros(2, [("x", "i4"), ("name", object)]), np.zeros(2, [("name", object), ("x", "i4")])
    for x in (ctypes.py_object * 2)(1, 2), Named(1, "x"), Colon(1, "x"), *map(memoryview, objects):
        with pytest.raises(TypeError, match="no data type of DLPack is a buffer's"):
            bytes_of(x)
    # The letter of a reference in a name.
    Opened = type("Opened", (ctypes.Structure,), {"_fields_": [("Open", ctypes.c_int), ("ONE", ctypes.c_int)]})
    assert bytes_of(Opened(1, 2)) == bytes(Opened(1, 2))
    released = memoryview(b"ab")
    released.release()
    with pytest.raises(ValueError, match="released"):
        bytes_of(released)


def test_an_enum_with_the_bytes_of_all_other_arrays():
    assert packet(np.ones((2,), np.float32)) == ("single", 2)
    for x in np.arange(3), np.ones((2, 3)), b"bytes", np.float32(1.0), np.zeros((0, 2)):
        assert packet(x) == ("bytes", memoryview(x).nbytes)
    for x in np.ones((3, 2)).T, np.arange(6)[::2]:
        with pytest.raises(BufferError, match="no variant of `Packet` accepts"):
            packet(x)


def test_bytes_are_written():
    x = np.array([1, 256], np.uint16)
    reverse_bytes(x)
    assert x.tobytes() == bytes([1, 0, 0, 1])
    x.flags.writeable = False
    for frozen in x, b"bytes":
        with pytest.raises(TypeError, match="read-only"):
            reverse_bytes(frozen)


def test_overlaps_of_bytes_are_refused():
    x = np.arange(4, dtype=np.uint32)
    with pytest.raises(TypeError, match="shares no memory with another argument"):
        copy_bytes(x[:2].view(np.uint64), x.reshape(2, 2)[:1])
    copy_bytes(x[:2], x[2:])
    assert x.tolist() == [0, 1, 0, 1]
    other = np.zeros(2, np.float64)
    copy_bytes(x, other)
    assert other.tobytes() == x.tobytes()


def test_a_view_as_a_result_is_a_tensor_over_its_memory():
    x = np.arange(6, dtype=np.float32)
    tensor = give_view(x[::2])
    assert type(tensor).__name__ == "Tensor"
    assert tensor.tolist() == [0.0, 2.0, 4.0]
    x[2] = 9
    assert tensor.tolist() == [0.0, 9.0, 4.0]
    out = np.from_dlpack(tensor)
    del tensor, x
    gc.collect()
    assert out.tolist() == [0.0, 9.0, 4.0]
    # The promise of the view has ended, so another view can be made.
    x, y, z = (np.arange(2, dtype=np.float32) for _ in range(3))
    any_, written, any_written, data = give_views(x, y, z, np.float64(1.0))
    np.from_dlpack(written)[0] = 5
    np.from_dlpack(any_written)[1] = 6
    assert (y[0], z[1]) == (5, 6)
    assert any_.tolist() == [0.0, 1.0]
    assert bytes(data.tolist()) == np.float64(1.0).tobytes()
    give_views(x, y, z, x.copy())


def test_a_class_is_the_tensor_of_its_field():
    titled = Titled()
    array = np.from_dlpack(titled)
    assert array.tolist() == [[1, 2], [3, 4]]
    array[0, 1] = 9
    # The field is writable, so an array borrows the object exclusively.
    with pytest.raises(RuntimeError, match="Already mutably borrowed"):
        titled.title()
    del array
    assert titled.title() == "Easel"
    assert np.asarray(titled).tolist() == [[1, 9], [3, 4]]
