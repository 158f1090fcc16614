"""Typed arguments: `View`, `ViewMut` and their options."""

import array
import gc
import os
import random
import re
import sys
import threading

import capi
import dlpack_probe as p
import numpy as np
import pytest

v = p.views


class Refused:
    """Expects a `TypeError` with this text for this argument, whose name PyO3 adds as a prefix or a note."""

    def __init__(self, argument, text):
        self.argument, self.text = argument, text

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert kind is TypeError, error
        notes = " ".join(getattr(error, "__notes__", []))
        # PyO3 adds the name as a note. Exceptions have notes from Python 3.11 on.
        assert f"'{self.argument}'" in str(error) + notes or sys.version_info < (3, 11), (error, notes)
        assert re.search(self.text, str(error)), error
        return True


def image(*shape, dtype="f4"):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def test_an_array_where_it_lies():
    a = image(3, 4)
    assert v.shape(a) == [3, 4]
    assert v.strides(a) == [4, 1]
    assert v.strides(a.T) == [1, 4]
    assert v.strides(a[::-1, ::2]) == [-4, 2]
    assert v.at(a[::-1, ::2], 0, 1) == 10
    assert v.at(a, 3, 0) is None


@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::2],
        lambda a: a[:, ::-1],
        lambda a: a[1:, 1:3],
        lambda a: a[:0],
        lambda a: a[:, :, 2],
        lambda a: a[0, 0, 0, ...],
        lambda a: np.broadcast_to(a[0], (3, 4, 5)),
        lambda a: a.swapaxes(0, 1)[::-1],
    ],
)
@pytest.mark.parametrize("size", [3, 40])
def test_elements_are_those_of_numpy(cut, size):
    a = cut(np.arange(size * 20, dtype="i4").reshape(size, 4, 5))
    assert v.elements(a) == a.ravel().tolist()


def test_any_rank():
    for rank in range(9):
        assert v.total(np.ones((2,) * rank)) == 2**rank


def test_rows_and_axes():
    a = image(3, 4, dtype="i4")
    for a in (a, a.T, a[::-1], a[:, :0]):
        rows, columns = v.sums(a)
        assert rows == a.sum(1).tolist()
        assert columns == a.sum(0).tolist()


def test_parts():
    a = image(5, 4, dtype="i4")
    assert v.crop(a, (1, 4), 2) == a[1:4, 2].tolist()
    with pytest.raises(IndexError, match=r"indices 4\.\.6 are out of range for axis 0 of size 5"):
        v.crop(a, (4, 6), 0)
    with pytest.raises(IndexError, match=r"indices 9\.\.10 are out of range for axis 1 of size 4"):
        v.crop(a, (0, 1), 9)


def test_a_fixed_extent():
    a = image(2, 3, 3, dtype="u1")
    assert [*map(list, v.colors(a))] == a.reshape(-1, 3).tolist()
    assert [*map(list, v.colors(a[::-1]))] == a[::-1].reshape(-1, 3).tolist()
    # Pixels of four bytes, of which three are needed.
    a = image(2, 3, 4, dtype="u1")[..., :3]
    assert [*map(list, v.colors(a))] == a.reshape(-1, 3).tolist()
    with Refused("image", r"^(argument 'image': )?expected an array of uint8 of shape \(_, _, 3\), found .* \(2, 3, 4\)"):
        v.colors(image(2, 3, 4, dtype="u1"))
    # NumPy gives a new empty array any strides, such as 0.
    for shape in (0, 4, 3), (4, 0, 3), (0, 0, 3):
        for empty in np.zeros(shape, "u1"), np.lib.stride_tricks.as_strided(np.zeros(9, "u1"), shape, (7, -5, 2)), np.zeros(shape, "u1").copy():
            assert list(v.colors(empty)) == [] and list(v.colors(memoryview(empty))) == []
    with pytest.raises(TypeError):
        v.colors(np.zeros((0, 4, 2), "u1"))


def test_bools_are_made_of_bytes():
    a = np.array([0, 1, 2, 255], "u1").view("?")
    assert v.flags(a) == [False, True, True, True]
    b = np.array([[True, False], [False, False]])
    v.negate(b.T)
    assert b.tolist() == [[False, True], [True, True]]


def test_writing():
    a = image(3, 4, dtype="f8")
    expected = a * 2.0
    v.scale(a, 2.0)
    assert (a == expected).all()
    v.scale(a[::2, ::-1], 0.0)
    expected[::2] = 0
    assert (a == expected).all()

    a = np.zeros((40, 300), "i4")
    v.number_rows(a)
    assert (a == np.arange(40)[:, None]).all()
    v.number_rows(a[:, ::2].T)
    assert (a[:, ::2] == np.arange(150)).all() and (a[:, 1::2] == np.arange(40)[:, None]).all()


def test_copying_one_array_into_another():
    a, b = image(30, 40, dtype="i4"), np.zeros((40, 30), "i4")
    v.copy(b, a.T)
    assert (b == a.T).all()
    v.copy(b.T, a[::-1])
    assert (b.T == a[::-1]).all()
    with pytest.raises(BufferError, match="expected size 40 for axis 0 of the tensor, found 30"):
        v.copy(b, a)


def test_a_view_over_the_memory_that_is_written():
    a = np.arange(16, dtype="i4").reshape(4, 4)
    before = a.copy()
    v.copy_over(a, a)
    assert (a == before).all()
    # Each element is one of the two old values.
    v.copy_over(a, a.T)
    assert all(a[i, j] in (before[i, j], before[j, i]) for i in range(4) for j in range(4))


def test_read_only_is_refused_at_the_call():
    a = image(3, 4, dtype="f8")
    a.flags.writeable = False
    with Refused("samples", "expected an array of float64 .* to write to, found a read-only one"):
        v.scale(a, 2.0)
    with Refused("samples", "elements that share memory"):
        v.scale(np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8)), 2.0)


@pytest.mark.parametrize(
    "argument, text",
    [
        (image(3, 4, dtype="f8"), r"found one of float64 of shape \(3, 4\); convert it first, in NumPy by x\.astype\('float32'\)"),
        (image(3, 4).astype(">f4"), r"found one of >f4, which NumPy does not export; convert it first, .* x\.astype\('float32'\)"),
        (image(3, 4).astype(object), "found one of object, which NumPy does not export"),
        (image(3, 4).astype("g"), "found one of (float128|float96), which NumPy does not export; convert it first"),
        (image(3, 4).astype("G"), "found one of (complex256|complex192), which NumPy does not export; convert it first"),
        (np.zeros((3, 4), "datetime64[ns]"), r"found one of datetime64\[ns\], which NumPy does not export"),
        (image(3), r"found one of float32 of shape \(3,\)"),
        ([[1.0]], r"found <class 'list'>, which has neither .* pass an array of NumPy.*numpy\.asarray\(x, dtype='float32'\)"),
        (None, "found <class 'NoneType'>"),
        (1.0, "found <class 'float'>"),
    ],
)
def test_arguments_that_do_not_fit(argument, text):
    with Refused("image", rf"expected an array of float32 of shape \(_, _\), {text}"):
        v.shape(argument)


def test_a_hint_to_make_another_array_says_that_it_is_written():
    kept = "; keep the new array, because the function writes to that one"
    for argument, hint in [
        (np.zeros((2, 3)), "convert it first, in NumPy by x.astype('int32')"),
        ([[1]], "such as numpy.asarray(x, dtype='int32')"),
    ]:
        with Refused("image", re.escape(hint + kept)):
            v.number_rows(argument)
    with pytest.raises(TypeError) as refused:
        v.shape(np.zeros((2, 3)))
    assert kept not in str(refused.value)


class Raising:
    """A producer that raises errors."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **request):
        raise self.error

    def __dlpack_device__(self):
        return (1, 0)


def test_the_error_of_a_producer_is_the_cause_of_that_of_a_conversion():
    error = RuntimeError("array was donated")
    with pytest.raises(TypeError) as raised:
        v.converted(Raising(error))
    assert raised.value.__cause__ is error

    class Explains(Raising):
        def __array__(self, dtype=None, copy=None):
            try:
                raise KeyError("m")
            except KeyError:
                raise ValueError("no unit")

    with pytest.raises(ValueError, match="no unit") as raised:
        v.converted(Explains(error))
    reason = raised.value.__context__
    assert isinstance(reason, KeyError) and reason.__cause__ is error
    assert not raised.value.__suppress_context__

    class HidesContext(Raising):
        def __array__(self, dtype=None, copy=None):
            try:
                raise KeyError("m")
            except KeyError:
                raise ValueError("no unit") from None

    with pytest.raises(ValueError, match="no unit") as raised:
        v.converted(HidesContext(error))
    assert raised.value.__cause__ is error, "a traceback does not show what precedes the KeyError"

    class Same(Raising):
        def __array__(self, dtype=None, copy=None):
            raise error

    with pytest.raises(RuntimeError) as raised:
        v.converted(Same(error))
    assert raised.value is error and error.__cause__ is None and error.__context__ is None

    class Caused(Raising):
        def __array__(self, dtype=None, copy=None):
            raise cause

    cause = error.__cause__ = ValueError("first")
    with pytest.raises(ValueError, match="first") as raised:
        v.converted(Caused(error))
    assert raised.value is cause and cause.__cause__ is None and cause.__context__ is None
    error.__cause__ = None
    for last in KeyboardInterrupt(), MemoryError():
        class Converted(Raising):
            def __array__(self, dtype=None, copy=None):
                raise last

        with pytest.raises(type(last)) as raised:
            v.converted(Converted(error))
        assert raised.value is last and last.__cause__ is None
    # A capsule is nothing but its tensor.
    capsule = np.arange(4.0).__dlpack__()
    assert v.converted(capsule) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="consumed already"):
        v.converted(capsule)
    with pytest.raises(TypeError, match="found one of float32"):
        v.converted(np.arange(4, dtype="f4").__dlpack__())


@pytest.mark.parametrize("error", [KeyboardInterrupt("own"), MemoryError("own"), ValueError("own")])
def test_an_interrupt_while_a_refused_array_is_described(error):
    class Dtype(np.ndarray):
        dtype = property(lambda self: fail())

        def __dlpack__(self, **request):
            raise BufferError("refused")

    class Itemsize(np.ndarray):
        itemsize = property(lambda self: fail())

        def __dlpack__(self, **request):
            raise BufferError("refused")

    def fail():
        raise error

    for array in np.zeros(3).view(Dtype), np.zeros(3, "u1, f8")["f1"].view(Itemsize):
        with pytest.raises((type(error), BufferError)) as raised:
            v.total(array)
        assert (raised.value is error) == (not isinstance(error, ValueError))


@pytest.mark.parametrize("make", [lambda: p.Exclusive([1.0, 2.0]), lambda: p.Mutable([1.0, 2.0])])
def test_an_object_that_is_borrowed_by_its_first_tensor_is_converted(make):
    """The tensor of another data type is dropped before NumPy exports the object once more."""
    thing = make()
    assert v.converted(thing) == [1.0, 2.0]
    assert v.converted(thing) == [1.0, 2.0], "it is not borrowed any more"


class Copies:
    """A producer whose exports are copies, and say so."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **request):
        return self.array.__dlpack__(**{**request, "copy": True})

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.skipif(tuple(map(int, np.__version__.split(".")[:2])) < (2, 1), reason="NumPy has no flag for copies")
def test_a_view_that_writes_refuses_a_copy():
    """Its writes would be lost. A view that reads accepts a copy, and so does each view if the caller passes the capsule itself."""
    for thing in Copies(np.arange(3.0)), p.Doubled([1.0, 2.0]):
        with pytest.raises(TypeError, match="to write to, found <class '.*'>, which exports a copy of its data"):
            p.reverse_bytes(thing)
        assert len(p.bytes_of(thing)) in (24, 8)
    with Refused("samples", "which exports a copy of its data"):
        v.scale(Copies(np.arange(3.0)), 2.0)
    assert v.scale(np.arange(3.0).__dlpack__(copy=True, max_version=(1, 0)), 2.0) is None
    kept = p.take(Copies(np.arange(3.0)))
    v.scale(kept, 2.0)
    assert kept.tolist() == [0.0, 2.0, 4.0]


def test_series_are_converted():
    """A Series of pandas or polars."""

    class Series:
        def to_numpy(self):
            return image(3, 4)

    with Refused("image", r"found <class .*Series'>, which has neither `__dlpack__` nor a buffer; pass x\.to_numpy\(\)"):
        v.shape(Series())
    assert v.shape(Series().to_numpy()) is not None


def test_the_error_of_numpy_is_the_cause():
    with pytest.raises(TypeError) as refused:
        v.shape(image(3, 4).astype(">f4"))
    causes = [refused.value]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    assert "byte order" in str(causes[-1])


def test_memory_of_a_device():
    with Refused("image", r"in host memory, found one on .*; copy it to the host first"):
        v.shape(p.Elsewhere(2))


def test_what_a_producer_raises_is_passed_on():
    class Broken:
        def __dlpack__(self, **_):
            raise RuntimeError("out of order")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(RuntimeError, match="out of order"):
        v.shape(Broken())


def test_contiguous():
    a = image(3, 4)
    assert v.packed(a) and v.packed(a[1:])
    with pytest.raises(TypeError, match=r"contiguous in row-major order, found one of shape \(4, 3\) with strides \(1, 4\); pass"):
        v.packed(a.T)


def test_conversion():
    assert v.converted([1, 2.5]) == [1.0, 2.5]
    assert v.converted(range(3)) == [0.0, 1.0, 2.0]
    assert v.converted(np.arange(3)) == [0.0, 1.0, 2.0]
    assert v.converted(np.arange(4.0)[::2]) == [0.0, 2.0]
    with pytest.raises(TypeError, match=r"shape \(_,\), found one of float64 of shape \(1, 1\)"):
        v.converted([[1.0]])
    with pytest.raises((TypeError, ValueError)):
        v.converted("text")
    a = image(3, 4)
    assert v.both(a.T) == a.T.ravel().tolist()
    assert v.both([[1, 2]]) == [1.0, 2.0]


def test_types_of_ml_dtypes(script):
    """NumPy knows their names only after the package was imported, which no code did before the conversion."""
    pytest.importorskip("ml_dtypes")
    script("""
import numpy as np, sys
import dlpack_probe as p
v = p.views

def refused(x):
    try:
        v.brain(x)
    except TypeError as error:
        return str(error)

assert "numpy.asarray(x, dtype=ml_dtypes.bfloat16)" in refused([1.0])
assert "convert it first, in NumPy by x.astype(ml_dtypes.bfloat16)" in refused(np.ones(3))
assert "ml_dtypes" not in sys.modules
assert v.halved([1.0, 3.0]) == [0.5, 1.5]
assert v.halved(np.ones(3)) == [0.5] * 3
import ml_dtypes
assert v.brain(np.ones(3).astype(ml_dtypes.bfloat16)) == 3
assert v.brain(np.asarray([1.0], dtype=ml_dtypes.bfloat16)) == 1
""")


def test_columns_of_packed_records():
    """The strides are no multiple of the item size, which DLPack cannot describe and NumPy does not export."""
    records = np.zeros((2, 3), [("price", "f8"), ("size", "i4"), ("bid", "?")])
    records["price"] = image(2, 3)
    for a in (records["price"][0], records["price"].T[1], np.ndarray((2,), "f8", bytes(17), 0, (9,))):
        assert v.converted(a) == a.tolist()
        text = rf"expected an array of float64 of shape \(.*\), found one with byte strides \({a.strides[0]},\), which are no multiple of "
        with Refused("samples", text + r"its item size 8; pass numpy\.ascontiguousarray\(x\)"):
            v.total(a)
        assert v.total(np.ascontiguousarray(a)) == a.sum()
    assert v.both(records["price"].T) == [0, 3, 1, 4, 2, 5]
    with Refused("samples", r"expected an array of float64 of shape \(..\), found one with byte strides \(9,\)"):
        v.scale(np.ndarray((2,), "f8", bytearray(17), 0, (9,)), 2.0)
    sizes = records["size"][0]
    with Refused("samples", r"expected an array that DLPack can describe, found one with byte strides \(13,\), .* numpy\.ascontiguousarray"):
        v.bytes(sizes)
    assert v.bytes(np.ascontiguousarray(sizes)) == 12
    with pytest.raises(TypeError, match=r"expected an array of any data type and shape, found one with byte strides \(13,\)"):
        p.bytes_of(sizes)
    with pytest.raises(TypeError, match=r"byte strides \(13,\), .*numpy\.ascontiguousarray"):
        p.Settings(2).state = records["price"][0]


def test_optional_and_several_types():
    assert v.maybe() is None and v.maybe(None) is None
    assert v.maybe(np.zeros(3, "f4")) == 3
    assert v.either(np.ones(3, "f4")) == v.either(np.ones(3)) == 3.0
    assert v.bytes(np.ones(3, "i4")) == 12 and v.bytes(np.ones(3, "i8")) == 24
    with pytest.raises(TypeError):
        v.either(np.ones(3, "i4"))


def test_slices_need_a_promise():
    a = image(4, dtype="f8")
    with pytest.raises(BufferError, match="others may write"):
        v.lent(a)

    class Copied:
        """A producer that copies without a request, and may keep the copy."""

        def __dlpack__(self, **request):
            return a.__dlpack__(max_version=(1, 0), copy=True)

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(BufferError, match="others may write"):
        v.lent(Copied())
    b = np.array([3.0, 1.0, 2.0])
    v.sort(b)
    assert b.tolist() == [1.0, 2.0, 3.0]
    assert v.dot(b, b) == 14.0
    assert not v.unwrapped(b)


def test_views_with_a_promise_do_not_meet():
    a = np.arange(8.0)
    with Refused("from", r"float64 of shape \(_,\) that shares no memory .*, found one of shape \(8,\) that may share memory, and .* pass a copy of it$"):
        v.add(a, a)
    with Refused("from", "shares no memory"):
        v.add(a[:5], a[4:])
    # Arguments that do not overlap are accepted.
    v.add(a[:4], a[4:])
    assert a.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]
    v.add(a[::2], a[1::2])
    assert a.tolist() == [10, 6, 18, 10, 9, 5, 13, 7]
    matrix = np.ones((3, 2))
    v.add(matrix[:, 0], matrix[::-1, 1])
    assert matrix[:, 0].tolist() == [2.0] * 3
    with Refused("from", "shares no memory"):
        v.add(matrix[:, 0], matrix[::-1, 0])

    v.keep(a)
    with Refused("samples", "shares no memory"):
        v.sort(a)
    assert v.dot(a, a) > 0
    assert v.let_go() == a.sum()
    v.sort(a)


def test_blocks_of_columns_are_not_recognised_as_disjoint():
    """The message must not say that they share memory. Blocks of rows and single columns are recognised."""
    a = np.arange(16, dtype="i4").reshape(4, 4)
    with Refused("from", r"that shares no memory with .*, found one of shape \(4, 2\) that may share memory, and one of the two is written"):
        v.copy(a[:, :2], a[:, 2:])
    v.copy(a[:2], a[2:])
    v.copy(a[:, :1], a[:, 3:])
    assert a[:, 0].tolist() == [11, 15, 11, 15]


def test_no_two_of_them_have_an_element_in_common():
    """Arguments that share memory by NumPy's answer are refused; of plain slices, no others are."""
    draw = random.Random(7)
    memory = np.arange(64.0)
    refused = 0
    for _ in range(3000):
        a, b = (memory[slice(*sorted(draw.sample(range(64), 2)), draw.randint(1, 5))] for _ in "ab")
        if draw.random() < 0.3:
            b = b[::-1]
        try:
            v.add(a, b)
        except TypeError:
            refused += 1
            assert np.shares_memory(a, b) or abs(a.strides[0]) + abs(b.strides[0]) > 16
        else:
            assert not np.shares_memory(a, b)
    assert 100 < refused < 2900


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_the_views_that_its_parent_keeps():
    a = np.arange(4.0)
    other = threading.Thread(target=v.keep, args=(a,))
    other.start()
    other.join()
    with Refused("samples", "shares no memory"):
        v.sort(a)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Refused("samples", "shares no memory"):
                v.sort(a)
            v.let_go()
            v.sort(a)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    v.let_go()


def test_a_view_keeps_its_array():
    a = np.arange(4.0)
    count = sys.getrefcount(a)
    v.keep(a)
    gc.collect()
    assert sys.getrefcount(a) > count
    del a
    assert v.let_go() == 6.0
    a = np.arange(4.0)
    v.keep(a)
    v.let_go()
    assert sys.getrefcount(a) == count


def test_refused_arguments_are_not_kept():
    a = np.arange(4.0)
    count = sys.getrefcount(a)
    for refuse in (v.shape, v.elements, v.packed, v.either):
        with pytest.raises((TypeError, RuntimeError)):
            refuse(a.reshape(2, 2)) if refuse is v.either else refuse(a)
    assert sys.getrefcount(a) == count


def test_reads_during_writes():
    a = np.zeros(5000)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            a[:] = 1.0
            a[:] = 0.0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert 0.0 <= v.total(a) <= 5000.0
    finally:
        stop.set()
        writer.join()


def test_objects_of_ours():
    """Imported through the exchange table, and returned as an object of ours."""
    a = image(3, 4)
    tensor = p.take(a)
    assert v.shape(tensor) == [3, 4]
    assert v.at(tensor, 1, 1) == 5.0
    foreign = capi.Foreign()
    with pytest.raises(TypeError, match="expected an array of float32"):
        v.maybe(foreign)
    del foreign


def test_the_examples_of_rust_numpy():
    x, y = np.arange(6.0).reshape(2, 3), np.ones((3, 2)).T
    z = np.from_dlpack(p.rust_ext.axpy(2.0, x, y))
    assert (z == 2 * x + y).all()
    p.rust_ext.mult(3.0, x[:, ::-1])
    other = array.array("d", [1.0, 2.0])
    p.rust_ext.mult(2.0, other)
    assert list(other) == [2.0, 4.0]
    assert np.from_dlpack(p.rust_ext.axpy(2.0, other, other)).tolist() == [6.0, 12.0]
    assert (x == 3 * np.arange(6.0).reshape(2, 3)).all()
    p.evaluate()
