"""Structured arrays: records as arguments, as results and in classes; invalid arrays, and what keeps the memory.

`campaign/records.py` compares random layouts with NumPy."""

import ctypes
import gc
import mmap
import re
import signal
import subprocess
import sys
import threading

import capi
import dlpack_probe as p
import pytest

np = pytest.importorskip("numpy")

from layouts import LAYOUTS, TRADE, assert_same, c, filled, packed, padding  # noqa: E402

OPERATIONS = ["read", "iterate", "contiguous", "promise"]


def test_each_layout_of_the_module_has_a_data_type_here():
    assert sorted(p.record_layouts()) == sorted(LAYOUTS) and len(LAYOUTS) >= 40


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_records_go_in_and_come_out(name, operation):
    dtype = LAYOUTS[name]
    for count in 0, 1, 7:
        array = filled(dtype, count)
        assert_same(p.on_records(name, operation, array), array)


@pytest.mark.parametrize("name", LAYOUTS)
def test_padding_is_not_written(name):
    dtype = LAYOUTS[name]
    array, to = filled(dtype, 5), np.full(5 * dtype.itemsize, 0xA5, "u1").view(dtype)
    p.on_records(name, "copy", array, to)
    assert_same(to, array)
    raw = to.view("u1").reshape(5, dtype.itemsize)
    assert (raw[:, padding(dtype)] == 0xA5).all()
    before = to.tobytes()
    p.on_records(name, "update", to)
    assert to.tobytes() == before


@pytest.mark.parametrize("name", ["Trade", "Packed", "Deep", "PackedPadded"])
def test_records_lie_anywhere(name):
    """Strides and addresses of every kind."""
    dtype = LAYOUTS[name]
    array = filled(dtype, 12)
    for part in array[::-1], array[::3], array[2:9], array[5:5], np.broadcast_to(array[:1], 4):
        assert_same(p.on_records(name, "read", part), np.ascontiguousarray(part))
    grid = array.reshape(3, 4)
    for part in grid, grid.T, np.asfortranarray(grid), grid[:, ::2], grid[:0]:
        found = p.on_records(name, "matrix", part)
        assert_same(found, np.ascontiguousarray(part.T).reshape(-1))
    raw = np.zeros(array.nbytes + 1, "u1")
    unaligned = raw[1:].view(dtype)
    unaligned[:] = array
    assert_same(p.on_records(name, "read", unaligned), array)
    # Fields inside of other records, whose size is not a multiple of this one's.
    outer = np.zeros(12, [("before", "u1"), ("inner", dtype), ("behind", "u1", 2)])
    outer["inner"] = array
    assert_same(p.on_records(name, "read", outer["inner"]), array)
    p.on_records(name, "copy", array[::-1].copy(), outer["inner"])
    assert_same(outer["inner"].copy(), array[::-1].copy())
    assert not outer["before"].any() and not outer["behind"].any()


def test_what_is_not_contiguous_is_refused_where_that_is_asked_for():
    array = filled(TRADE, 6)
    with pytest.raises(TypeError, match=r"contiguous in row-major order, found one of shape \(3,\) with byte strides \(32,\)"):
        p.on_records("Trade", "contiguous", array[::2])


def test_any_byte_is_a_bool():
    array = np.zeros(3, TRADE)
    array["bid"].view("u1")[:] = 0, 2, 255
    assert p.on_records("Trade", "read", array)["bid"].view("u1").tolist() == [0, 1, 1]
    assert p.on_records("Trade", "promise", array)["bid"].view("u1").tolist() == [0, 1, 1]


def placed(*fields):
    """A data type of 16 bytes, with each field at its offset."""
    names, formats, offsets = zip(*fields)
    return np.dtype({"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": 16})


WRONG = {
    "name": c(("price", "f8"), ("count", "u4"), ("bid", "?")),
    "order": packed(("size", "u4"), ("price", "f8"), ("bid", "?")),
    "type": c(("price", "f8"), ("size", "i4"), ("bid", "?")),
    "width": c(("price", "f4"), ("size", "u4"), ("bid", "?")),
    "offset": placed(("price", "f8", 0), ("size", "u4", 8), ("bid", "?", 13)),
    "size": packed(("price", "f8"), ("size", "u4"), ("bid", "?")),
    "more": c(("price", "f8"), ("size", "u4"), ("bid", "?"), ("ask", "?")),
    "fewer": c(("price", "f8"), ("size", "u4")),
    "big endian": placed(("price", ">f8", 0), ("size", "u4", 8), ("bid", "?", 12)),
    "array": placed(("price", "f8", 0), ("size", ("u4", 1), 8), ("bid", "?", 12)),
    "bytes": c(("price", "f8"), ("size", "S4"), ("bid", "?")),
    "text": c(("price", "f8"), ("size", "U1"), ("bid", "?")),
    "object": c(("price", "O"), ("size", "u4"), ("bid", "?")),
    "time": c(("price", "M8[ns]"), ("size", "u4"), ("bid", "?")),
    "duration": c(("price", "m8[s]"), ("size", "u4"), ("bid", "?")),
    "void": c(("price", "V8"), ("size", "u4"), ("bid", "?")),
    "nested": c(("price", [("x", "f8")]), ("size", "u4"), ("bid", "?")),
    "byte for bool": c(("price", "f8"), ("size", "u4"), ("bid", "u1")),
    "number": np.dtype("f8"),
    "void items": np.dtype("V16"),
    "no fields": np.dtype([]),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_records_are_refused_with_both_layouts(what):
    dtype = WRONG[what]
    with pytest.raises(TypeError) as error:
        p.on_records("Trade", "read", np.zeros(3, dtype))
    text = str(error.value)
    assert "expected an array of records `Trade` of shape (_,), found one of shape (3,) whose items differ:" in text
    lines = [line.split() for line in text.splitlines()[1:]]
    assert lines[0] == ["offset", "expected", "found"]
    assert ["price:", "float64"] in [line[1:3] for line in lines if line[0] == "0"]
    marked = [line for line in lines if line[-1] == "<"]
    assert marked, text
    for name in dtype.names or ():
        if name:
            assert f"{name}: " in text


def test_the_layouts_are_side_by_side():
    with pytest.raises(TypeError) as error:
        p.on_records("Outers", "read", np.zeros(2, c(("a", "u1"), ("inner", c(("x", ">f8"), ("y", "i1")), 2), ("c", "U2"))))
    assert str(error.value).split("differ:")[1] == """
  offset  expected             found
       0  a: uint8             a: uint8
       8  inner[2].x: float64  inner[2].x: >f8 <
      16  inner[2].y: int8     inner[2].y: int8
      40  b: uint16            c: <U2 <
      48  end                  end"""


@pytest.mark.parametrize("thing", [None, 1, [(1.0, 2, True)], "text", {"price": 1.0}, object()])
def test_objects_that_are_no_arrays_are_refused(thing):
    with pytest.raises(TypeError, match="expected an array of records `Trade` of shape|numpy.array"):
        p.on_records("Trade", "read", thing)


def test_another_rank_is_refused():
    with pytest.raises(TypeError, match=r"of shape \(_,\), found one of shape \(2, 3\)$"):
        p.on_records("Trade", "read", filled(TRADE, 6).reshape(2, 3))
    with pytest.raises(TypeError, match=r"of shape \(_,\), found one of shape \(\)$"):
        p.on_records("Trade", "read", filled(TRADE, 6)[0])
    with pytest.raises(TypeError, match=r"of shape \(_, _\), found one of shape \(6,\)$"):
        p.on_records("Trade", "matrix", filled(TRADE, 6))


def test_a_masked_array_is_refused():
    masked = np.ma.masked_array(filled(TRADE, 3), mask=[(1, 0, 0), (0, 0, 0), (0, 0, 0)])
    with pytest.raises(TypeError, match="a masked array"):
        p.on_records("Trade", "read", masked)


def test_what_is_read_only_is_not_written():
    array = filled(TRADE, 3)
    array.flags.writeable = False
    before = array.tobytes()
    assert_same(p.on_records("Trade", "read", array), array)
    for thing in array, memoryview(array), bytes(array), array[1]:
        with pytest.raises(TypeError, match="read-only|shape"):
            p.on_records("Trade", "update", thing)
    with pytest.raises(TypeError, match="to write to, found a read-only one; pass a copy of it$"):
        p.on_records("Trade", "update", array)
    assert array.tobytes() == before
    # NumPy would return a copy of a record here.
    with pytest.raises(TypeError, match="read-only"):
        p.on_records("Trade", "update", filled(TRADE, 3)[1])
    with pytest.raises(TypeError, match="share memory"):
        p.on_records("Trade", "update", np.lib.stride_tricks.as_strided(filled(TRADE, 3), (3,), (8,)))


def test_what_is_written_overlaps_no_other_argument():
    array = filled(TRADE, 6)
    with pytest.raises(TypeError, match="shares no memory with another argument .* that may share memory, and one of the two"):
        p.on_records("Trade", "copy", array, array)
    with pytest.raises(TypeError, match="shares no memory with another argument"):
        p.on_records("Trade", "copy", array[:4], array[3:])
    p.on_records("Trade", "copy", array[:3], array[3:])
    assert_same(array[3:], array[:3])
    other = array[::-1].copy()
    p.on_records("Trade", "reverse", array[:3], array[3:])
    assert_same(array[:3], other[:3])


class Loud(np.ndarray):
    """An array whose attributes contradict its memory."""

    dtype = property(lambda self: np.dtype("f8"))
    shape = property(lambda self: (10**9,))
    strides = property(lambda self: (0,))
    itemsize = property(lambda self: 1)
    __array_interface__ = property(lambda self: {"data": (0, False), "shape": (9,), "typestr": "<f8", "version": 3})
    __array__ = __dlpack__ = __buffer__ = lambda self, *_, **__: 1 / 0


def test_an_array_that_lies_is_read_as_it_is():
    array = filled(TRADE, 4)
    assert_same(p.on_records("Trade", "read", array.view(Loud)), array)
    other = filled(WRONG["size"], 4).view(Loud)
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Trade", "read", other)


def test_names_that_are_changed_in_place_are_seen():
    dtype = np.dtype([("price", "f8"), ("size", "u4"), ("bid", "?"), ("", "V3")])
    array = np.zeros(3, np.dtype({"names": ["price", "size", "bid"], "formats": ["f8", "u4", "?"], "itemsize": 16}))
    assert len(p.on_records("Trade", "read", array)) == 3
    array.dtype.names = ("price", "count", "bid")
    with pytest.raises(TypeError, match="count: uint32 <"):
        p.on_records("Trade", "read", array)
    array.dtype.names = ("price", "size", "bid")
    assert len(p.on_records("Trade", "read", array)) == 3
    assert dtype.names[-1] == "f3"


def test_a_kept_view_does_not_see_later_types():
    array = filled(TRADE, 4)
    sizes = array["size"].tolist()
    kept = p.KeptRecords(array)
    array.dtype = np.dtype("u1")
    assert kept.sizes() == sizes
    array.shape = (2, 32)
    assert kept.sizes() == sizes
    with pytest.raises(ValueError):
        array.resize(1)
    del array
    gc.collect()
    assert kept.sizes() == sizes


def test_a_kept_view_locks_a_base_that_is_no_array():
    base = bytearray(filled(TRADE, 4).tobytes())
    array = np.ndarray(4, TRADE, buffer=base)
    kept = [p.KeptRecords(array)]
    sizes = array["size"].tolist()
    del array
    with pytest.raises(BufferError):
        base.clear()
    assert kept.pop().sizes() == sizes
    base.clear()


@pytest.mark.skipif(not capi.GIL, reason="a thread that reads may see half of a change; soundness.md says so")
def test_concurrent_changes_of_the_type_are_harmless():
    """An array of four records becomes one of bytes and back, while other threads read it."""
    array, stop = filled(TRADE, 4), threading.Event()
    expected = array.copy()

    def change():
        while not stop.is_set():
            array.dtype = "u1"
            array.dtype = TRADE

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    seen = {"read": 0, "refused": 0}
    try:
        for _ in range(3000):
            try:
                found = p.on_records("Trade", "read", array)
            except TypeError as error:
                assert "items differ" in str(error)
                seen["refused"] += 1
            else:
                assert_same(found, expected)
                seen["read"] += 1
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert seen["read"] > 0


HALF_OF_A_CHANGE = """
import os, sys, threading
import numpy as np
record = np.dtype([("a", "f8"), ("b", "u8")])
array = np.zeros(4, record)
def change():
    while True:
        array.dtype = "u1"
        array.dtype = record
sys.setswitchinterval(1e-6)
threading.Thread(target=change, daemon=True).start()
while True:
    try:
        copied = array.copy()
    except (TypeError, ValueError):
        break
    if (copied.dtype, copied.shape) not in ((record, (4,)), (np.dtype("u1"), (64,))):
        break
os._exit(0)
"""


@pytest.mark.skipif(capi.GIL, reason="with the GIL no thread sees half of a change")
def test_concurrent_changes_of_the_type_harm_numpy():
    """The control of the test above, without our code: NumPy copies the shape of one type with the other type."""
    ended = subprocess.run([sys.executable, "-c", HALF_OF_A_CHANGE], timeout=60)
    assert ended.returncode in (0, -signal.SIGSEGV, -signal.SIGABRT)


def test_records_of_recarrays_and_scalars():
    array = filled(TRADE, 4)
    assert_same(p.on_records("Trade", "read", array.view(np.recarray)).view(np.ndarray), array)
    assert p.on_records("Trade", "len", array.view(np.recarray)[1:]) == 3


def test_records_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, -2], "b": [0.5, 2.5], "c": [3, 4]})
    frame = frame.astype({"a": "i1", "c": "i1"})
    records = frame.to_records(index=False)
    found = p.on_records("Packed", "read", records)
    assert found.tolist() == [(1, 0.5, 3), (-2, 2.5, 4)]
    with pytest.raises(TypeError, match="index: int64"):
        p.on_records("Packed", "read", frame.to_records())
    with pytest.raises(TypeError, match="to_records"):
        p.on_records("Packed", "read", frame)


def test_records_of_a_file(tmp_path):
    path, array = tmp_path / "ticks.bin", filled(LAYOUTS["Tick"], 100)
    path.write_bytes(b"header!" + array.tobytes())
    mapped = np.memmap(path, LAYOUTS["Tick"], mode="r+", offset=7)
    assert_same(np.asarray(p.on_records("Tick", "read", mapped)), array)
    p.on_records("Tick", "copy", array[::-1].copy(), mapped)
    mapped.flush()
    assert path.read_bytes()[7:] == array[::-1].tobytes()
    with pytest.raises(TypeError, match="read-only"):
        p.on_records("Tick", "update", np.memmap(path, LAYOUTS["Tick"], mode="r", offset=7))


class CTrade(ctypes.Structure):
    _fields_ = [("price", ctypes.c_double), ("size", ctypes.c_uint32), ("bid", ctypes.c_bool)]


class COuters(ctypes.Structure):
    class Inner(ctypes.Structure):
        _fields_ = [("x", ctypes.c_double), ("y", ctypes.c_int8)]

    _fields_ = [("a", ctypes.c_uint8), ("inner", Inner * 2), ("b", ctypes.c_uint16)]


@pytest.mark.filterwarnings("ignore:A builtin ctypes object gave a PEP3118 format")
def test_records_of_ctypes():
    trades = (CTrade * 3)((1.5, 2, True), (2.5, 3, False), (3.5, 4, True))
    assert p.on_records("Trade", "read", trades).tolist() == [(1.5, 2, True), (2.5, 3, False), (3.5, 4, True)]
    p.on_records("Trade", "reverse", trades, p.on_records("Trade", "read", trades))
    assert [(trade.price, trade.size, trade.bid) for trade in trades] == [(3.5, 4, True), (2.5, 3, False), (1.5, 2, True)]
    outers = (COuters * 2)()
    outers[1].inner[1].y = -3
    assert p.on_records("Outers", "read", outers)["inner"]["y"].tolist() == [[0, 0], [0, -3]]
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Trade", "read", outers)


def test_records_of_other_buffers():
    array = filled(TRADE, 4)
    assert_same(p.on_records("Trade", "read", memoryview(array)), array)
    raw = mmap.mmap(-1, array.nbytes)
    raw[:] = array.tobytes()
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Trade", "read", raw)
    shared = np.frombuffer(raw, TRADE)
    assert_same(p.on_records("Trade", "read", shared), array)
    del shared
    raw.close()
    # The error of an object that has a buffer, but cannot export it now, is passed on.
    released = memoryview(b"")
    released.release()
    for closed in raw, released:
        with pytest.raises(ValueError, match="closed|released"):
            p.on_records("Trade", "read", closed)


def test_a_result_shares_the_memory_of_its_list():
    array = p.on_records("Trade", "read", filled(TRADE, 4))
    assert array.flags.writeable and array.flags.aligned
    assert not array.flags.owndata
    array["price"] = 7.0
    assert array["price"].tolist() == [7.0] * 4
    again = p.on_records("Trade", "read", array)
    assert again.ctypes.data != array.ctypes.data
    part = array["size"][1:]
    value = part.tolist()
    del array
    gc.collect()
    assert part.tolist() == value


def test_records_with_code_at_their_end_are_read_only():
    array = p.hidden_records(3)
    assert not array.flags.writeable
    assert array.dtype.names == ("seen", "last") and array.dtype.itemsize == 24
    assert array["seen"].tolist() == [0, 1, 2] and array["last"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError):
        array.flags.writeable = True


def test_a_field_without_a_data_type_is_refused():
    with pytest.raises(BufferError, match="the field `wide` of the records has no data type in NumPy: it is made of uint128"):
        p.wide_records()


def test_a_class_is_a_structured_array():
    tape = p.Tape(4)
    array = np.asarray(tape)
    assert array.dtype == TRADE and array.shape == (4,) and array.tolist()[3] == (3.5, 3, True)
    assert not array.flags.writeable
    assert array.ctypes.data == np.from_dlpack(tape.price).ctypes.data
    view = memoryview(tape)
    assert view.format == memoryview(np.zeros(1, TRADE)).format == "T{d:price:I:size:?:bid:}"
    assert (view.itemsize, view.shape, view.strides, view.readonly, view.nbytes) == (16, (4,), (16,), True, 64)
    assert np.asarray(view).dtype == TRADE
    assert bytes(memoryview(tape).cast("B"))[8:12] == b"\0\0\0\0" if sys.byteorder == "little" else True
    assert tape.__dlpack_tensors__ == ("price", "size", "bid")
    assert np.from_dlpack(tape.size).tolist() == [0, 1, 2, 3]
    assert_same(p.on_records("Trade", "read", tape), array)
    copy = np.array(tape)
    assert copy.flags.writeable and copy.tolist() == array.tolist()
    with pytest.raises(TypeError, match="read-only"):
        p.on_records("Trade", "update", tape)


def test_an_array_over_a_class_keeps_and_borrows_it():
    tape = p.Tape(4)
    array = np.asarray(tape)
    with pytest.raises(RuntimeError, match="Already borrowed"):
        tape.push()
    address = array.ctypes.data
    del tape
    gc.collect()
    assert array.ctypes.data == address and array["size"].tolist() == [0, 1, 2, 3]
    tape = p.Tape(2)
    memoryview(tape).release()
    tape.push()
    assert len(np.asarray(tape)) == 3
    assert np.asarray(p.Tape(0)).shape == (0,) and np.asarray(p.Tape(0)).dtype == TRADE


def test_a_class_of_records_is_no_tensor():
    """DLPack has no type for records: the columns are tensors, and the class is not."""
    tape = p.Tape(2)
    assert not hasattr(tape, "__dlpack__")
    with pytest.raises((AttributeError, TypeError)):
        np.from_dlpack(tape)
    with pytest.raises((BufferError, TypeError)):
        p.take(tape)


def test_hidden_fields_are_padding():
    mixed = p.Mixed(3)
    array = np.asarray(mixed)
    assert array.dtype.names == ("seen", "last") and array["last"].tolist() == [0, 1, 2]
    assert not array.flags.writeable
    with pytest.raises((BufferError, TypeError)):
        (ctypes.c_char * array.nbytes).from_buffer(mixed)


def test_a_buffer_is_given_as_it_is_asked_for():
    tape = p.Tape(2)
    view = memoryview(tape)
    assert view.c_contiguous and view.f_contiguous and view.contiguous
    assert view.cast("B").nbytes == 32
    with pytest.raises(TypeError):
        view.cast("B")[0] = 1
    with pytest.raises((BufferError, TypeError), match="read-only|not writable"):
        (ctypes.c_char * 32).from_buffer(tape)


def test_a_message_is_no_longer_than_its_fields():
    """A data type of many levels."""
    dtype = np.dtype("f8")
    for _ in range(40):
        dtype = np.dtype([("inside", dtype)])
    with pytest.raises(TypeError) as error:
        p.on_records("Trade", "read", np.zeros(1, dtype))
    assert len(str(error.value)) < 5000 and re.search(r"inside\.inside", str(error.value))


def test_names_that_are_no_utf8():
    """The error is that of the view, also for a name with half of a character."""
    for name in ["\ud800", "a\udfff"]:
        for dtype in [np.dtype([(name, "u1")]), np.dtype([("a", [(name, "u1"), ("b", "u1", 2)])])]:
            with pytest.raises(TypeError, match="expected an array of records .*items differ"):
                p.on_records(p.record_layouts()[0], "read", np.zeros(2, dtype))
