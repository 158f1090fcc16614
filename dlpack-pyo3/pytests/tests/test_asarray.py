"""`numpy.asarray(obj)`, `memoryview(obj)` and functions that use them, for every class and without DLPack."""

import gc
import inspect
import sys

import capi
import dlpack_probe as p
import pytest

CLASSES = {
    "frozen": lambda: p.Guarded([0.0, 1.0, 2.0]),
    "with a borrow": lambda: p.Mutable([0.0, 1.0, 2.0]),
    "writable": lambda: p.Exclusive([0.0, 1.0, 2.0]),
    "SharedBuffer": lambda: p.Changing([0.0, 1.0, 2.0]),
    "two axes": lambda: p.Buffered([0.0, 1.0, 2.0, 3.0]),
    "computed": lambda: p.Doubled([0.0, 1.0]),
    "an enum": lambda: p.Audio.Float([0.0, 1.0]),
    "Protocol": lambda: p.ByHand([0.0, 1.0]),
    "Owned": lambda: p.Owned([0.0, 1.0, 2.0]),
    "Tensor": lambda: p.take(p.Open([0.0, 1.0, 2.0])),
}


@pytest.fixture(params=CLASSES)
def make(request):
    return CLASSES[request.param]


def test_an_array_of_every_class(numpy, make):
    """CAP-18: the array has the memory and flags of `from_dlpack`, and keeps the object as long."""
    thing = make()
    held = capi.references(thing)
    wanted = numpy.from_dlpack(thing)
    expected = wanted.tolist(), wanted.dtype, wanted.shape, wanted.strides, wanted.flags.writeable
    address = wanted.ctypes.data
    del wanted
    for function in [numpy.asarray, type(thing).__array__, lambda thing: numpy.array(thing, copy=None if numpy.__version__ >= "2" else False)]:
        array = function(thing)
        assert type(array) is numpy.ndarray
        assert (array.tolist(), array.dtype, array.shape, array.strides, array.flags.writeable) == expected
        assert array.ctypes.data == address or isinstance(thing, p.Doubled)
        part = array[1:]
        del array
        gc.collect()
        assert capi.references(thing) > held or isinstance(thing, (p.Doubled, p.Owned, p.Tensor))
        assert part.tolist() == expected[0][1:]
        del part
        gc.collect()
        assert capi.references(thing) == held
    assert numpy.mean(thing) == numpy.mean(expected[0])


def test_a_memoryview_of_every_class(numpy, make):
    """CAP-18: a memoryview of every class, in every build and on every Python."""
    thing = make()
    array = numpy.asarray(thing)
    rows, readonly = array.tolist(), not array.flags.writeable
    del array
    view = memoryview(thing)
    assert (view.tolist(), view.readonly) == (rows, readonly)
    assert bytes(view) == numpy.array(rows, view.format).tobytes()
    del view
    gc.collect()
    with memoryview(thing) as view:
        assert view.nbytes == len(bytes(view))
    if sys.version_info >= (3, 12):
        import collections.abc

        assert isinstance(thing, collections.abc.Buffer)


WRITABLE, FORMAT = 0x1, 0x4
# ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS and INDIRECT; and none of these, for which Python refuses a format.
LAYOUTS = [(0, 0), (0, WRITABLE)]
LAYOUTS += [(layout, others) for layout in (0x8, 0x18, 0x38, 0x58, 0x98, 0x118) for others in (0, WRITABLE, FORMAT, WRITABLE | FORMAT)]


@pytest.mark.parametrize(("layout", "others"), LAYOUTS)
def test_a_buffer_has_the_fields_of_a_memoryview(numpy, layout, others):
    """LAY-02: a buffer of any layout, requested with any flags, has the fields or the error of a memoryview's buffer."""
    made = numpy.arange(24, dtype="i2").reshape(2, 3, 4)
    few = [made, made.T, made[:, ::2], made[0, 0], made[:, 0, :1], made.transpose(1, 0, 2), made[:, :, ::-1]]
    few += [made[0, 0, :1].reshape(()), made.reshape(2, 1, 3, 1, 2, 1, 2)]
    for readonly in False, True:
        for array in few:
            if readonly:
                array.flags.writeable = False
            expected = capi.buffer(memoryview(array), layout | others)
            assert capi.buffer(p.take(array), layout | others) == expected, array.strides


def test_arrays_one_after_another(numpy):
    """CAP-18: several arrays of one object may live, as with from_dlpack; of an exclusively borrowed object only one at a time."""
    for thing in [p.Mutable([1.0]), p.Open([1.0]), p.Guarded([1.0])]:
        first, second = numpy.asarray(thing), numpy.asarray(thing)
        assert first.ctypes.data == second.ctypes.data
    thing = p.Exclusive([1.0])
    first = numpy.asarray(thing)
    first[0] = 5
    for again in [numpy.from_dlpack, numpy.asarray, numpy.mean]:
        with pytest.raises(BufferError, match="borrowed"):
            again(thing)
    del first
    assert numpy.asarray(thing).tolist() == [5]


def test_a_borrow_lasts_as_long_as_the_array(numpy):
    """CAP-18"""
    thing = p.Mutable([1.0])
    array = numpy.asarray(thing)[:]
    with pytest.raises(RuntimeError, match="borrowed"):
        thing.push(2.0)
    del array
    thing.push(2.0)
    assert numpy.asarray(thing).tolist() == [1, 2]


DTYPES = "? b B h H i I l L q Q e f d F D".split()


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "float8_e5m2"])
def test_every_data_type(numpy, dtype):
    """DTY-01: by the buffer, or by `__array__` for types without a buffer format; also without axes, and empty."""
    if dtype not in DTYPES:
        dtype = getattr(pytest.importorskip("ml_dtypes"), dtype)
        code, bits = (4, 16) if numpy.dtype(dtype).itemsize == 2 else (12, 8)
        tensor = p.take(capi.Foreign(raw=bytes(range(12)), shape=(2, 3), dtype=(code, bits, 1)))
        with pytest.raises(BufferError, match="no format"):
            memoryview(tensor)
    else:
        whole = numpy.arange(6).reshape(2, 3).astype(dtype)
        tensor = p.take(whole)
        assert (numpy.asarray(tensor) == whole).all()
        # NumPy falls back to other protocols, so a missing format is noticed only by a memoryview.
        view = memoryview(tensor)
        assert (view.itemsize, numpy.asarray(view).dtype) == (whole.itemsize, whole.dtype)
        assert bytes(view) == whole.tobytes()
    for part in [tensor, tensor[::-1, 1:], tensor[1, 1, ...], tensor[:, :0], tensor[:, None]]:
        array = numpy.asarray(part)
        assert (array.dtype, array.shape) == (dtype, part.shape)
        assert array.size == 0 or array.ctypes.data == part.data_ptr
        assert array.tobytes() == part.numpy().tobytes()
    assert tensor.numpy().ctypes.data == tensor.data_ptr


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "bool", "float64", "complex128"])
def test_items_have_the_usual_scalar_types(numpy, dtype):
    """NumPy has two classes of 8-byte integers on most systems, of which only one is `numpy.int64`."""
    tensor = p.take(numpy.ones((2, 2), dtype))
    for array in numpy.asarray(tensor), tensor.numpy(), numpy.asarray(memoryview(tensor)):
        assert array.dtype.char == numpy.dtype(dtype).char
        assert type(array[0, 0]) is getattr(numpy, "bool_" if dtype == "bool" else dtype)


def test_arguments_of_array(numpy):
    """CPY-01, CPY-02, CPY-03: dtype and copy, by position and by name, mean the same as in NumPy 2."""
    thing = p.Open([1.0, 2.5])
    array = thing.__array__()
    for same in [thing.__array__(None), thing.__array__("f4"), thing.__array__(numpy.float32, copy=None), thing.__array__(copy=False)]:
        assert same.ctypes.data == array.ctypes.data
    for other in [thing.__array__("f4", True), thing.__array__(copy=True), numpy.array(thing)]:
        assert other.ctypes.data != array.ctypes.data and other.dtype == "f4" and other.flags.writeable
        assert other.base is None or not isinstance(other.base, type(array.base))
    for other in [thing.__array__("f8"), thing.__array__(dtype=numpy.float64, copy=True), numpy.asarray(thing, "f8")]:
        assert other.dtype == "f8" and other.tolist() == [1, 2.5]
    assert thing.__array__("i2").tolist() == [1, 2]
    with pytest.raises(ValueError, match="the data is float32; as f8 it must be copied, and copy=False forbids that"):
        thing.__array__("f8", copy=False)
    for wrong in [{"device": 1}, {"dtype": "no such"}]:
        with pytest.raises(TypeError):
            thing.__array__(**wrong)
    with pytest.raises(TypeError):
        thing.__array__(None, None, None)
    assert str(inspect.signature(type(thing).__array__)) == "(self, /, dtype=None, copy=None)"


def test_copy_is_passed_on(numpy):
    """CPY-02: numpy.asarray(x, copy=False) never copies."""
    if numpy.__version__ < "2":
        pytest.skip("NumPy 1 has no such keyword")
    thing = p.Guarded([1.0, 2.0])
    assert numpy.asarray(thing, copy=False).ctypes.data == numpy.from_dlpack(thing).ctypes.data
    assert numpy.asarray(thing, copy=True).flags.writeable
    with pytest.raises(ValueError):
        numpy.asarray(thing, "f8", copy=False)
    # Computed for each export.
    doubled = p.Doubled([1.0])
    assert doubled.__array__().tolist() == [2.0]
    with pytest.raises(BufferError):
        doubled.__array__(copy=False)
    with pytest.raises(TypeError, match="copy is True, False or None"):
        thing.__array__(copy="no")


@pytest.mark.parametrize("device", [(2, 1), (10, 0), (8, 0)])
def test_data_on_a_device(numpy, device):
    """ERR-01: device memory gives an error that names a fix, and no array of objects."""
    thing = p.Elsewhere(*device)
    for function in [numpy.asarray, numpy.mean, lambda thing: thing.__array__(copy=True)]:
        with pytest.raises(TypeError, match=r'is on \w+:\d.*`numpy.from_dlpack\(x, device="cpu"\)`'):
            function(thing)
    with pytest.raises(BufferError, match="host memory"):
        memoryview(thing)


def test_methods_of_the_users_own(numpy):
    """A method that the class itself defines is not replaced."""
    thing = p.Own([1.0, 2.0])
    assert thing.__array__() == "own"
    assert memoryview(thing).tolist() == [1.0, 2.0]


def test_a_class_in_python(numpy):
    """A class that derives from ours inherits all methods, and may override them."""
    class Derived(p.Own):
        pass

    thing = Derived([1.0, 2.0])
    assert memoryview(thing).tolist() == [1.0, 2.0]

    class Other(p.Own):
        def __array__(self, dtype=None, copy=None):
            return numpy.zeros(3)

        def __buffer__(self, flags):
            return memoryview(b"abc")

    if sys.version_info >= (3, 12):
        assert memoryview(Other([1.0])).tobytes() == b"abc"
    assert Other([1.0]).__array__().tolist() == [0, 0, 0]

    class Redirected(p.Own):
        def __dlpack__(self, **request):
            return self.other.__dlpack__(**request)

    # The buffer is that of the tensor that the class itself exports. The instance has a reference to the other object, because
    # PyO3 0.28 never frees a class that had instances, nor what its methods refer to.
    redirected = Redirected([7.0, 8.0])
    redirected.other = thing
    assert memoryview(redirected).tolist() == [1.0, 2.0]
    assert numpy.asarray(memoryview(redirected)).tolist() == [1.0, 2.0]


def test_tensors_of_an_object_are_no_array(numpy):
    """A class that only has tensors by name has no buffer and no `__array__`."""
    tables = p.Tables(3)
    assert not hasattr(tables, "__array__")
    with pytest.raises(TypeError):
        memoryview(tables)


def test_a_class_that_lost_its_methods(script):
    """A class whose methods were deleted, and which is only reached through its buffer, gives an error and does not crash."""
    script(
        """
import dlpack_probe as p
thing = p.Guarded([1.0])
for name in ["__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"]:
    delattr(p.Guarded, name)
try:
    memoryview(thing)
except TypeError as error:
    assert "has lost its" in str(error)
else:
    raise AssertionError
"""
    )


def test_lenders_cannot_be_made_in_python(numpy):
    """The class of the object behind a memoryview can neither be instantiated nor subclassed."""
    tensor = p.take(b"abc")
    lender = (tensor.__buffer__(0) if sys.version_info >= (3, 12) else memoryview(tensor)).obj
    assert type(lender).__name__ == "Buffer"
    for make in [type(lender), lambda: object.__new__(type(lender)), lambda: type("Sub", (type(lender),), {})]:
        with pytest.raises(TypeError):
            make()
    assert bytes(memoryview(lender)) == b"abc"


def test_writing_through_a_buffer(numpy):
    """FLG-01: a buffer is writable exactly if consumers may write."""
    thing = p.Changing([1.0, 2.0])
    memoryview(thing)[0] = 9.0
    assert numpy.asarray(thing).tolist() == [9, 2]
    with pytest.raises(TypeError, match="read-only"):
        memoryview(p.Guarded([1.0]))[0] = 2.0


def test_classes_with_the_option_are_iterated():
    """The items are tensors over the object, which they keep. pandas treats an object with both methods as an array."""
    rows = p.Rows([1.0, 2.0, 3.0, 4.0])
    first, second = rows
    assert isinstance(first, p.Tensor)
    assert [first.tolist(), second.tolist()] == [[1.0, 2.0], [3.0, 4.0]]
    assert first.data_ptr == p.Tensor.from_dlpack(rows).data_ptr
    with pytest.raises(RuntimeError, match="Already borrowed"):
        rows.push(5.0)
    del first, second
    assert len(rows) == 2
    assert rows and not p.Rows([])
    rows.push(5.0)
    for wrong in [len, iter]:
        with pytest.raises(BufferError):
            wrong(rows)
    assert [type(rows).__iter__.__doc__, type(rows).__len__.__doc__].count(None) == 0


def test_items_and_iterators_keep_the_object():
    """CAP-18: an item, or the iterator, keeps the object."""
    rows = p.Rows([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RuntimeError, match="Already borrowed"):
        for part in rows:
            rows.push(part[0].item())
    del part
    rows.push(5.0)
    rows.push(6.0)
    parts = iter(rows)
    del rows
    first = next(parts)
    del parts
    gc.collect()
    assert first.tolist() == [1.0, 2.0]
    for method in p.Rows.__iter__, p.Rows.__len__:
        for wrong in [3, p.Rows, p.Counted(), first]:
            with pytest.raises(TypeError, match="doesn't apply|requires a"):
                method(wrong)


def test_user_defined_methods_are_not_replaced():
    counted = p.Counted()
    assert len(counted) == 42
    assert [part.item() for part in counted] == [1.0, 2.0, 3.0]
    assert not hasattr(p.Strict, "__iter__") and not hasattr(p.Strict, "__len__")
