"""Slices of tensors, `tensor[..]`: what NumPy returns for the same index, over the same memory; and imports that keep no chain of
tensors."""

import gc
import os
import random
import sys
import threading

import capi
import dlpack_probe as p
import pytest

CASES = int(os.environ.get("DLPACK_CASES", "1500"))
NEW = {"max_version": (1, 3)}


# The traceback of a failed test may keep a tensor of this producer.
KEPT = capi.Foreign()


@pytest.fixture
def tensor():
    """Two rows of three numbers."""
    return p.take(KEPT)


# -- the items of a slice -----------------------------------------------------------------------------


def an_index(dice, shape):
    """A tuple of basic indices for an array of this shape."""
    items = []
    for extent in shape[: dice.randrange(len(shape) + 1)]:
        if extent and dice.random() < 0.3:
            items.append(dice.randrange(-extent, extent))
        else:
            edge = lambda: dice.choice([None, *range(-extent - 2, extent + 3), 2**70, -(2**70)])
            items.append(slice(edge(), edge(), dice.choice([None, 1, 2, 3, -1, -2, -4, 2**65, -(2**65)])))
    if dice.random() < 0.3:
        items.insert(dice.randrange(len(items) + 1), None)
    if dice.random() < 0.4 and len(items) < 5:
        # Items after the ellipsis are counted from the end.
        at = dice.randrange(len(items) + 1)
        tail = len([item for item in items[at:] if item is not None])
        head = len(items[:at]) - items[:at].count(None)
        fits = all(
            not isinstance(item, int) or -extent <= item < extent
            for item, extent in zip([item for item in items[at:] if item is not None], shape[len(shape) - tail :])
        )
        if head + tail <= len(shape) and fits:
            items.insert(at, ...)
    return items[0] if len(items) == 1 and dice.random() < 0.5 else tuple(items)


def test_slices_agree_with_numpy(numpy):
    """Random indices, one after another, over transposed and sliced arrays: the same items at the same addresses as in NumPy."""
    dice, cut = random.Random(1), 0
    for _ in range(CASES):
        shape = [dice.choice([0, 1, 2, 3, 5]) for _ in range(dice.randrange(5))]
        array = numpy.arange(numpy.prod(shape, dtype=int), dtype="int32").reshape(shape)
        array = array.transpose(dice.sample(range(len(shape)), len(shape)))
        tensor = p.take(array)
        for _ in range(3):
            index = an_index(dice, array.shape)
            # With an ellipsis NumPy returns an array, even for a single item.
            whole = index if isinstance(index, tuple) else (index,)
            array = array[whole if ... in [item for item in whole if item is ...] else (*whole, ...)]
            tensor = tensor[index]
            assert tensor.shape == array.shape, index
            back = numpy.from_dlpack(tensor)
            assert (back == array).all()
            if array.size:
                cut += 1
                assert tensor.data_ptr == array.__array_interface__["data"][0]
                steps = [(s, t) for s, t, extent in zip(back.strides, array.strides, array.shape) if extent > 1]
                assert all(s == t for s, t in steps)
    assert cut > CASES


def test_writing_to_a_slice(numpy):
    """Writes to a slice are writes to the tensor, and the reverse."""
    array = numpy.zeros((3, 4), "float32")
    part = p.take(array)[1:, ::-2]
    numpy.from_dlpack(part)[...] = [[1, 2], [3, 4]]
    assert array.tolist() == [[0, 0, 0, 0], [0, 2, 0, 1], [0, 4, 0, 3]]
    array[2, 3] = 7
    assert p.look(part)["floats"] == [1, 2, 7, 4]


def test_rows_and_single_items(tensor):
    """`for` and `len` work as for any sequence; a single item is a tensor, too."""
    assert [p.look(row)["floats"] for row in tensor] == [[1, 2, 3], [4, 5, 6]]
    assert len(tensor) == 2 and [len(row) for row in tensor] == [3, 3]
    item = tensor[1, -1]
    assert (item.shape, item.strides, p.look(item)["floats"]) == ((), (), [6.0])
    for act in (len, iter, list):
        with pytest.raises(TypeError, match="without axes"):
            act(item)
    with pytest.raises(IndexError, match="at most 0 indices, one for each axis, found 1"):
        item[0]
    assert item[()].data_ptr == item[...].data_ptr == item.data_ptr
    assert item[None].shape == (1,)
    assert tensor[True:].shape == (1, 3)


class Number:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        if isinstance(self.number, Exception):
            raise self.number
        return self.number


def test_numbers_of_other_types(numpy, tensor):
    """Any object with `__index__` is accepted as an integer."""
    for one in [Number(1), numpy.int8(1), numpy.uint64(1), numpy.array(1)]:
        assert p.look(tensor[one])["floats"] == [4, 5, 6]
        assert tensor[one:, :one].shape == (1, 1)
    with pytest.raises(ZeroDivisionError):
        tensor[Number(ZeroDivisionError())]


def test_invalid_indices(tensor):
    """An index out of range is an `IndexError`, a step of 0 a `ValueError`; any index other than a basic one is a `TypeError` that
    names NumPy."""
    for index, words in [
        (2, "index 2 is out of bounds for axis 0 of size 2"),
        (-3, "index -3 is out of bounds for axis 0"),
        ((0, 3), "index 3 is out of bounds for axis 1 of size 3"),
        ((..., 3), "axis 1"),
        (2**64, "out of bounds"),
        (-(2**200), "out of bounds"),
        (Number(2**64), "out of bounds"),
        ((0, 0, 0), "at most 2 indices, one for each axis, found 3"),
        ((slice(None),) * 3, "at most 2 indices, one for each axis, found 3"),
        ((..., 0, ...), "only once"),
    ]:
        with pytest.raises(IndexError, match=words):
            tensor[index]
    with pytest.raises(ValueError, match="zero"):
        tensor[::0]
    for index in [[0], "0", 1.0, 1j, True, (0, False), {}, object(), ((0,),), b"", tensor]:
        with pytest.raises(TypeError, match=r"integers, slices, `...` and None, found <class.*numpy.from_dlpack"):
            tensor[index]
    with pytest.raises(TypeError, match="slice indices must be"):
        tensor[:"a"]
    with pytest.raises(TypeError, match="assignment"):
        tensor[0] = 1
    assert tensor[(None,) * 62].shape == (1,) * 62 + (2, 3)
    with pytest.raises(BufferError, match="65 axes"):
        tensor[(None,) * 63]


def test_items_that_share_a_byte():
    """Items that share a byte can be sliced only at the start of a byte."""
    tensor = p.take(p.Probe([4, 6], "float4_e2m1fn"))
    part = tensor[1:3, 2:]
    assert part.data_ptr == tensor.data_ptr + 4 and part.strides == (6, 1)
    # Three items together and one alone start at whole bytes.
    odd = p.take(p.Probe([3, 3], "float4_e2m1fn"))
    assert odd[1, 1].data_ptr == odd.data_ptr + 2
    with pytest.raises(BufferError, match="bit 12"):
        odd[1]


# -- its flags and device -----------------------------------------------------------------------------


def flags(tensor):
    seen = capi.export(tensor, **NEW)
    found = seen.flags
    seen.release()
    return found


def test_read_only_stays(numpy):
    """A slice of read-only memory is read-only, and a slice of a copy is not flagged as a copy."""
    array = numpy.arange(4.0)
    array.flags.writeable = False
    legacy = capi.Foreign(legacy=True)
    for producer in [p.Probe([2]), array, legacy]:
        part = p.take(producer)[:1][0:]
        assert part.readonly and flags(part) == 1
        assert not numpy.from_dlpack(part).flags.writeable
    foreign = capi.Foreign()
    part = p.take(foreign)[:1]
    assert not part.readonly and flags(part) == 0
    copy = p.Tensor.from_dlpack(p.Probe([2]), copy=True)
    assert "copied" in repr(copy) and "copied" not in repr(copy[:1])
    # Other code may write it, so it is not lent as a Rust slice.
    assert not p.look(copy[:1])["lent"]
    padded = p.take(p.Probe([4], "float4_e2m1fn", padded=True))
    assert flags(padded[3:]) & 4 and padded[3].data_ptr == padded.data_ptr + 3


@pytest.mark.parametrize("kind", range(1, 19))
def test_slices_on_any_device(kind):
    """No memory is accessed. If the address is a handle, the slice has a byte offset instead."""
    if kind in (5, 6):
        pytest.skip("no device")
    if kind == 13 and not os.environ.get("DLPACK_SIMULATOR"):
        pytest.skip("the processor reads managed memory when the driver says that it may")
    producer = p.Elsewhere(kind) if kind not in (1, 3, 11, 13) else capi.Foreign(device=(kind, 0), shape=(4,))
    tensor = p.take(producer)
    part = tensor[3:0:-2]
    assert part.device == (kind, 0) and part.shape == (2,) and part.strides == (-2,)
    seen = capi.export(part, **({"stream": -1} if kind in (2, 3, 10, 11, 13) else {}), **NEW)
    whole, tensor_ = seen.struct.dl_tensor, tensor.data_ptr
    is_handle = kind in (4, 7, 8, 15)
    assert (whole.data - tensor_, whole.byte_offset) == ((0, 12) if is_handle else (12, 0))
    seen.release()


# -- what keeps the memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["whole first", "part first", "on a thread"])
def test_a_slice_keeps_the_memory(order):
    """The last of tensor and slice releases the memory, on any thread."""
    foreign = capi.Foreign()
    whole = p.take(foreign)
    part = whole[1]
    small = part[1:]
    del part
    if order == "part first":
        del small
        assert foreign.deleted == 0
        del whole
    elif order == "whole first":
        del whole
        assert foreign.deleted == 0 and p.look(small)["floats"] == [5, 6]
        del small
    else:
        p.keep(small)
        del whole, small
        assert foreign.deleted == 0
        p.let_go(thread=True, detached=True)
    gc.collect()
    assert foreign.deleted == 1


def live_blocks(of_python):
    """The blocks allocated by the module's Rust code; with `of_python` also those of Python's objects."""
    gc.collect()
    return p.allocated_in_rust()[0] + (sys.getallocatedblocks() if of_python else 0)


def through_legacy(tensor):
    return p.Tensor.from_dlpack(tensor.__dlpack__())


def through_table(tensor):
    table = capi.Exchange(type(tensor))
    return table.to_object(table.from_object(tensor))


WAYS = {
    "from_dlpack": p.Tensor.from_dlpack,
    "take": p.take,
    "argument": p.first,
    "part": lambda tensor: tensor[...],
    "capsule": lambda tensor: p.Tensor.from_dlpack(tensor.__dlpack__(**NEW)),
    "legacy": through_legacy,
    "table": through_table,
    "all": lambda tensor: through_table(through_legacy(p.take(tensor[...]))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [lambda: p.Probe([2]), lambda: capi.Foreign(shape=(6,))], ids=["ours", "foreign"])
def test_imports_of_imports_keep_no_chain(way, make):
    """However often a tensor is imported again, it keeps what the first one keeps, and no tensor in between."""
    producer, step = make(), WAYS[way]
    if way in ("legacy", "all") and isinstance(producer, p.Probe):
        # It is read-only, which a legacy struct cannot express.
        producer = p.Owned([1.0, 2.0])
    tensor = first = p.take(producer)
    for _ in range(50):
        tensor = step(tensor)
    held, address = capi.references(producer), tensor.data_ptr
    # Checked here, because Python may begin to keep such objects with its first thread.
    of_python = not capi.ctypes_leaks()
    before = live_blocks(of_python)
    for _ in range(1000):
        tensor = step(tensor)
    # A chain would have at least one block of Rust for each link.
    assert live_blocks(of_python) - before < 500
    assert capi.references(producer) == held
    # The legacy struct has no flag for read-only data, so its consumer gets a copy.
    assert way in ("legacy", "all") or tensor.data_ptr == address
    kept = capi.references(first)
    assert kept <= 3
    del first
    assert p.look(tensor)["floats"]
    del tensor
    if isinstance(producer, capi.Foreign):
        assert producer.deleted == 1


def test_slices_of_slices_keep_no_chain(numpy):
    """Each slice of a slice keeps what the tensor keeps."""
    array = numpy.arange(2000.0)
    tensor = first = p.take(array)
    before = live_blocks(True)
    for _ in range(1000):
        tensor = tensor[1:]
    assert live_blocks(True) - before < 500
    assert numpy.from_dlpack(tensor)[0] == 1000
    # The array itself, or the one tensor that keeps it.
    assert capi.references(first) <= 2
    del first, tensor


def test_slices_on_many_threads(numpy):
    """Threads that slice one tensor and drop the slices at the same time."""
    array = numpy.arange(64.0)
    tensor, wrong = p.take(array), []
    held = capi.references(tensor)

    def cut():
        for index in range(2000):
            part = p.take(tensor[index % 64 :])[0]
            if p.look(part)["floats"] is not None or part.dtype != "float64":
                wrong.append(index)

    threads = [threading.Thread(target=cut) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and capi.references(tensor) == held
