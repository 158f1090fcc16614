"""Values and nulls are Arrow's, and a column is an array over its buffer."""

import gc
import threading
import weakref

import numpy as np
import pytest
import quotes
from arrow_column import Quotes

TIME, PRICE = np.arange(8) - 3, np.array([1, np.nan, 2, 3, 4, np.nan, 5, 6])


def test_values_and_nulls():
    batch = Quotes(TIME, PRICE)
    assert np.array_equal(batch.values("time"), TIME) and batch.valid("time").all()
    assert np.array_equal(batch.valid("price"), ~np.isnan(PRICE))
    assert np.array_equal(batch.values("price")[batch.valid("price")], PRICE[~np.isnan(PRICE)])


def test_a_column_is_its_buffer():
    batch = Quotes(TIME, PRICE)
    values = batch.values("time")
    address = values.ctypes.data
    assert batch.values("time").ctypes.data == address and not values.flags.writeable
    part = batch.rows(3, 4)
    assert part.values("time").ctypes.data == address + 24 and part.values("time").tolist() == [0, 1, 2, 3]
    assert part.valid("price").tolist() == [True, True, False, True]
    del batch, part
    gc.collect()
    assert np.array_equal(values, TIME)


def test_what_comes_in_is_copied():
    time = TIME.copy()
    batch = Quotes(time[::-1], PRICE)
    time[:] = 0
    assert np.array_equal(batch.values("time"), TIME[::-1])


def test_an_array_becomes_a_column_where_it_lies():
    time, price = TIME.copy(), PRICE.copy()
    addresses, gone = (time.ctypes.data, price.ctypes.data), weakref.ref(time)
    batch = Quotes.over(time, price)
    del time, price
    gc.collect()
    columns = batch.values("time"), batch.values("price")
    assert tuple(column.ctypes.data for column in columns) == addresses
    assert np.array_equal(columns[0], TIME) and np.array_equal(batch.valid("price"), ~np.isnan(PRICE))
    assert batch.rows(2, 3).values("time").ctypes.data == addresses[0] + 16
    # The buffer keeps the array, and columns in Python keep the buffer; another thread drops the last of them.
    last = [columns]
    del batch, columns
    assert gone() is not None
    thread = threading.Thread(target=last.clear)
    thread.start()
    thread.join()
    assert gone() is None


def test_a_tensor_of_torch_becomes_a_column_where_it_lies():
    torch = pytest.importorskip("torch")
    time, price = torch.arange(4), torch.ones(4, dtype=torch.float64)
    batch = Quotes.over(time, price)
    assert batch.values("time").ctypes.data == time.data_ptr()
    assert batch.values("price").ctypes.data == price.data_ptr()


def test_what_is_no_buffer_is_refused():
    odd = np.frombuffer(bytearray(65), np.int64, 8, offset=1)
    for time in [np.arange(16)[::2], odd]:
        with pytest.raises(BufferError, match="contiguous|multiple of 8"):
            Quotes.over(time, PRICE)
    empty = Quotes.over(TIME[:0], PRICE[:0])
    assert empty.values("time").size == 0


def test_what_is_not_there():
    batch = Quotes(TIME, PRICE)
    with pytest.raises(KeyError, match="volume"):
        batch.values("volume")
    with pytest.raises(ValueError, match="rows from 5, 4 of them, where there are 8"):
        batch.rows(5, 4)
    with pytest.raises(ValueError, match="length"):
        Quotes(TIME, PRICE[1:])


def test_the_program(capsys):
    quotes.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prices [1.5 -- 2.5 3.5 -- 4.5], their mean 3.0"
    assert lines[1:] == [
        "a column at two looks: not copied",
        "rows from 2: [20 30 40], 16 bytes into the same buffer",
        "into Arrow: copied",
        "into Arrow by Quotes.over: not copied",
    ]
