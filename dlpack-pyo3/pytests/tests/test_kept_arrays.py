"""Operations of Python code on a NumPy array while Rust keeps a tensor over its memory."""

import gc
import mmap
import pickle
import sys
import weakref

import dlpack_probe as p
import numpy as np
import pytest

BIG = 1 << 16


def keep_view(array):
    p.views.keep(array)
    return p.views.let_go


def keep_managed(array):
    p.keep(array)
    return lambda: p.let_go(thread=True)


def keep_tensor(array):
    tensor = [p.take(array)]
    return lambda: tensor.clear()


def keep_part(array):
    """A slice of a tensor that is dropped."""
    part = [p.take(array)[1:]]
    return lambda: part.clear()


def keep_array_over_tensor(array):
    other = [p.take(array).numpy()]
    return lambda: other.clear()


def keep_buffer(array):
    adopted = [p.adopt(array)]
    return lambda: adopted.clear()


def keep_without_copy(array):
    tensor = [p.Tensor.from_dlpack(array, copy=False)]
    return lambda: tensor.clear()


def keep_on_host(array):
    tensor = [p.Tensor.from_dlpack(array, device=(1, 0))]
    return lambda: tensor.clear()


KEPT = [keep_view, keep_managed, keep_tensor, keep_part, keep_array_over_tensor, keep_buffer, keep_without_copy, keep_on_host]


class Method:
    """Passes on the buffer of another object: a method since Python 3.12."""

    def __init__(self, given):
        self.given = given

    def __buffer__(self, flags):
        return memoryview(self.given)


WITH_METHOD = [pytest.param(Method, marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="a method since Python 3.12"))]


def made(keep):
    return np.arange(1.0, 9.0, dtype="f4" if keep is keep_buffer else "f8")


@pytest.mark.parametrize("keep", KEPT)
def test_an_array_is_not_resized(keep):
    """NumPy assumes that two references are the caller's; in `pop().resize` there is only one."""
    arrays = [made(keep)]
    release = keep(arrays[0])
    with pytest.raises(ValueError, match="cannot resize"):
        arrays.pop().resize(BIG)
    release()
    array = made(keep)
    release = keep(array)
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize(BIG)
    release()


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("part", [slice(None), slice(1, 7)])
@pytest.mark.parametrize("behind", [memoryview, pickle.PickleBuffer, lambda array: memoryview(pickle.PickleBuffer(array)), *WITH_METHOD])
def test_an_array_behind_a_buffer_is_not_resized(keep, part, behind):
    """A buffer does not prevent that."""
    arrays = [made(keep)]
    release = keep(behind(arrays[0][part]))
    with pytest.raises(ValueError, match="cannot resize"):
        arrays.pop().resize(BIG)
    gc.collect()
    release()
    arrays = [made(keep)]
    keep(behind(arrays[0][part]))()
    arrays.pop().resize(BIG)


@pytest.mark.parametrize("keep", KEPT)
def test_the_base_of_a_view_is_not_resized(keep):
    """The array that owns the memory is kept, however many views are in between."""
    for view in [lambda a: a[1:7], lambda a: a[1:][:6], lambda a: a.view()[2:]]:
        arrays = [made(keep)]
        release = keep(view(arrays[0]))
        with pytest.raises(ValueError, match="cannot resize"):
            arrays.pop().resize(BIG)
        release()


@pytest.mark.parametrize("keep", KEPT)
def test_all_references_are_given_back(keep):
    for view in [lambda a: a, lambda a: a[1:7]]:
        array = made(keep)
        part = view(array)
        counts = sys.getrefcount(array), sys.getrefcount(part)
        for _ in range(3):
            keep(part)()
        assert (sys.getrefcount(array), sys.getrefcount(part)) == counts
        owner = weakref.ref(array)
        release = keep(part)
        del array, part
        gc.collect()
        assert owner() is not None
        release()
        assert owner() is None
    arrays = [made(keep)]
    keep(arrays[0])()
    arrays.pop().resize(BIG)


def over_bytearray(data, dtype):
    base = bytearray(data)
    return np.ndarray(8, dtype, buffer=base), [base.clear, lambda: base.append(1)]


def over_memoryview(data, dtype):
    """NumPy keeps the object behind the `memoryview`."""
    base = bytearray(data)
    with memoryview(base) as view:
        return np.ndarray(8, dtype, buffer=view), [base.clear]


def over_buffer(data, dtype):
    array = np.frombuffer(bytearray(data), dtype)
    return array, [array.base.release]


def over_bytearray_with_a_base(data, dtype):
    """The attribute is no reason not to lock the memory."""

    class Named(bytearray):
        pass

    base = Named(data)
    base.base = np.zeros(3)
    return np.ndarray(8, dtype, buffer=base), [base.clear, lambda: base.append(1)]


def over_memoryview_of_a_base(data, dtype):
    array, releases = over_bytearray_with_a_base(data, dtype)
    base = array.base
    array = np.frombuffer(base, dtype)
    return array, [array.base.release, *releases]


def over_mapped_file(data, dtype):
    base = mmap.mmap(-1, len(data))
    base[:] = data
    return np.ndarray(8, dtype, buffer=base), [base.close]


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("lend", [over_bytearray, over_bytearray_with_a_base, over_memoryview, over_memoryview_of_a_base, over_buffer, over_mapped_file])
def test_a_base_that_is_no_array_keeps_its_memory(keep, lend):
    """NumPy gives its buffer of the base back, or keeps it in an object that Python code can release."""
    for part in slice(None), slice(1, 7):
        array, releases = lend(made(keep).tobytes(), made(keep).dtype)
        release = keep(array[part])
        for free in releases:
            with pytest.raises(BufferError):
                free()
        del array
        gc.collect()
        for free in releases:
            with pytest.raises(BufferError):
                free()
        release()
        releases[0]()


def through_window(array):
    return np.lib.stride_tricks.sliding_window_view(array, 1)[:, 0]


def through_memoryview(array):
    return np.asarray(memoryview(array))


def through_links(array):
    for _ in range(6):
        array = through_memoryview(through_window(array))
    return array


def through_scalar(array):
    """The scalar is a view of the only record."""
    return np.frombuffer(array.view([("all", array.dtype, len(array))])[0], array.dtype)


def through_pickle_buffer(array):
    return np.ndarray(array.shape, array.dtype, buffer=pickle.PickleBuffer(array))


def through_pickle_buffer_of_scalar(array):
    return np.ndarray(array.shape, array.dtype, buffer=pickle.PickleBuffer(array.view([("all", array.dtype, len(array))])[0]))


def through_method(array):
    return np.asarray(Method(array))


def through_buffer_of_method(array):
    return np.ndarray(array.shape, array.dtype, buffer=Method(Method(array)))


LINKS = [through_window, through_memoryview, through_links, through_scalar, np.lib.stride_tricks.as_strided]
LINKS += [through_pickle_buffer, through_pickle_buffer_of_scalar]
LINKS += [through_method, through_buffer_of_method] if sys.version_info >= (3, 12) else []


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("link", LINKS)
def test_the_array_behind_a_base_is_not_resized(keep, link):
    """NumPy puts objects that are no arrays between an array and the one that owns its memory."""
    arrays = [made(keep)]
    view = link(arrays[0])
    assert type(view) is np.ndarray and view.ctypes.data == arrays[0].ctypes.data
    release = keep(view)
    del view
    with pytest.raises(ValueError, match="cannot resize"):
        arrays.pop().resize(BIG)
    release()


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("link", LINKS)
def test_the_owner_behind_a_base_keeps_its_memory(keep, link):
    base = mmap.mmap(-1, made(keep).nbytes)
    release = keep(link(np.ndarray(8, made(keep).dtype, buffer=base)))
    gc.collect()
    with pytest.raises(BufferError):
        base.close()
    release()
    base.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have no `__buffer__`")
@pytest.mark.parametrize("keep", KEPT)
def test_a_base_that_wraps_a_memoryview(keep):
    """NumPy takes the wrapper that Python puts before the result of `__buffer__` as the base, and no buffer."""
    arrays = [made(keep)]
    memory = memoryview(Method(arrays[0]))
    view = np.ndarray(arrays[0].shape, arrays[0].dtype, buffer=memory)
    assert type(view.base).__name__ == "_buffer_wrapper"
    release = keep(view)
    del view, memory
    gc.collect()
    with pytest.raises(ValueError, match="cannot resize"):
        arrays.pop().resize(BIG)
    release()


@pytest.mark.parametrize("keep", KEPT)
def test_a_base_that_names_another_array(keep):
    """The attribute `base` of a program's own class may be any array: the object itself is kept too."""

    class Owner:
        def __init__(self, array):
            self.array, self.base = array, np.zeros(3)
            self.__array_interface__ = array.__array_interface__

    owner = Owner(made(keep))
    array, gone = np.asarray(owner), weakref.ref(owner)
    assert array.base is owner
    release = keep(array)
    del owner, array
    gc.collect()
    assert gone() is not None
    release()
    gc.collect()
    assert gone() is None


def test_a_base_that_changes_the_array():
    """The array gets other memory while its base is asked; what is imported belongs to what is kept."""

    class Owner:
        def __init__(self, array):
            self.array, self.asked = array, False
            self.__array_interface__ = array.__array_interface__

        @property
        def base(self):
            self.asked = True
            view.__setstate__(np.full(4, 7.0).__reduce__()[2])

    owner = Owner(np.arange(8.0))
    view = np.asarray(owner)[2:]
    tensor = p.take(view)
    assert owner.asked
    del view
    gc.collect()
    junk = [np.full(4, 1.0) for _ in range(100)]
    assert tensor.tolist() == [7.0] * 4
    del junk


@pytest.mark.parametrize("behind", [lambda part: part, memoryview, pickle.PickleBuffer])
def test_the_array_behind_a_record_is_not_resized(behind):
    """The bytes of a record, which is a scalar of NumPy over an array."""
    arrays = [np.zeros(100, [("a", "f8"), ("b", "f8")])]
    others = [np.zeros(3, "f4") for _ in range(3)]
    kept = p.give_views(*others, behind(arrays[0][3]))
    with pytest.raises(ValueError, match="cannot resize"):
        arrays.pop().resize(BIG)
    del kept


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`__buffer__` is a method since Python 3.12")
def test_a_method_that_returns_another_buffer():
    """An import requests the buffer twice. The memory is that of the second."""
    arrays = [np.full(8, float(number), "f4") for number in range(2)]

    class Alternating:
        requests = 0

        def __buffer__(self, flags):
            self.requests += 1
            return memoryview(arrays[self.requests % 2])

    before = [sys.getrefcount(arrays[number]) for number in range(2)]
    tensor = p.take(Alternating())
    after = [sys.getrefcount(arrays[number]) for number in range(2)]
    used = int(tensor.numpy()[0])
    # Two references, and that of the buffer.
    assert after[used] == before[used] + 3 and after[1 - used] == before[1 - used]


def test_links_without_end():
    """A chain that is too long is imported by NumPy's own method."""
    array = np.arange(8.0)
    for _ in range(100):
        array = through_memoryview(array)
    assert p.take(array).tolist() == list(range(8))


def test_a_base_that_refuses_its_buffer():
    """An array over released memory is imported as NumPy itself reads it; no exception stays behind."""
    array = np.frombuffer(b"12345678", "u1")
    base = memoryview(b"12345678")
    other = np.ndarray(8, "u1", buffer=base)
    base.release()
    assert p.take(array).tolist() == p.take(other).tolist() == list(b"12345678")


@pytest.mark.parametrize("keep", [*KEPT, lambda array: setattr(p.Settings(8), "state", array)])
@pytest.mark.parametrize("step", ["base", pytest.param("__buffer__", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="a method since Python 3.12"))])
@pytest.mark.parametrize("error", [KeyboardInterrupt("own"), SystemExit(3), MemoryError("own"), ValueError("own")])
def test_an_interrupt_in_a_base(keep, step, error):
    """An interrupt reaches the caller; of any other error of a base only follows that it has no array, or no buffer."""

    def fail(*_):
        raise error

    class Owner:
        def __init__(self, array):
            self.array, self.__array_interface__ = array, array.__array_interface__

    array = np.asarray(Owner(made(keep)))
    setattr(Owner, step, property(fail) if step == "base" else fail)
    for view in array, memoryview(array):
        if isinstance(error, ValueError):
            release = keep(view)
            if release:
                release()
        else:
            with pytest.raises(type(error)) as arrived:
                keep(view)
            assert arrived.value is error


def test_a_view_that_gets_another_state():
    """`__setstate__` drops the base of a view at once; the memory stays."""
    array = made(keep_managed)
    view = array[2:]
    owner = weakref.ref(array)
    release = keep_managed(view)
    view.__setstate__(np.zeros(1).__reduce__()[2])
    del array
    gc.collect()
    assert view.tolist() == [0.0] and owner() is not None
    release()
    assert owner() is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_assigned_to_an_array_does_not_change_its_tensor():
    array = made(keep_tensor)
    tensor = p.take(array)
    array.shape = (2, 4)
    array.dtype = "i4"
    array.setflags(write=False)
    assert (tensor.shape, tensor.strides, tensor.dtype, tensor.readonly) == ((8,), (1,), "float64", False)
    assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
