"""The candles are those that pandas finds, and its columns are Rust's memory."""

import gc

import market
import numpy as np
import pandas as pd
import pytest
from candles import Candles


def test_the_candles_are_those_of_pandas():
    times, prices, sizes = market.trades(20_000)
    frame = market.table(Candles(times, prices, sizes, market.MINUTE))
    index = pd.DatetimeIndex(times)
    wanted = pd.Series(prices, index).resample("min").ohlc().dropna()
    assert np.array_equal(frame.index, wanted.index)
    assert np.array_equal(frame[["open", "high", "low", "close"]], wanted)
    of_trades = pd.Series(sizes, index).resample("min")
    assert np.array_equal(frame["volume"], of_trades.sum()[frame.index])
    assert np.array_equal(frame["trades"], of_trades.count()[frame.index])


def test_columns_are_the_memory_of_the_rows():
    candles = Candles(*market.trades(5000), market.MINUTE)
    start = candles.time.ctypes.data
    frame = market.table(candles)
    assert np.shares_memory(frame.index, candles.time)
    for place, name in enumerate(frame, 1):
        column = frame[name].to_numpy()
        assert column.ctypes.data == start + 8 * place and column.strides == (56,), name
        assert not column.flags.writeable
    wanted = frame.copy()
    del candles
    gc.collect()
    assert frame.equals(wanted)


def test_only_a_copy_can_be_changed():
    frame = market.table(Candles(*market.trades(5000), market.MINUTE))
    first = frame.iloc[0, 0]
    with pytest.raises(ValueError, match="read-only"):
        frame.iloc[0, 0] = -1.0
    assert frame.iloc[0, 0] == first
    changed = frame.copy()
    changed.iloc[0, 0] = -1.0
    assert changed.iloc[0, 0] == -1 and frame.iloc[0, 0] == first


def test_before_1970_and_where_nobody_trades():
    candles = Candles(np.array([-5, -1, 3, 25]), np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4), 10)
    assert candles.time.tolist() == [-10, 0, 20]
    assert candles.high.tolist() == [3, 2, 4] and candles.trades.tolist() == [2, 1, 1]
    assert len(Candles(*market.trades(0), 10)) == 0


@pytest.mark.parametrize("period", [0, -1, 10])
def test_what_makes_no_candles(period):
    times, prices, sizes = market.trades(9)
    with pytest.raises(ValueError, match=r"\[9, 9, 8\] times, prices and sizes" if period > 0 else "ns"):
        Candles(times, prices, sizes[: 9 - (period > 0)], period)


def test_the_program(capsys):
    frame = market.main()
    assert len(frame) == 78
    assert "columns in the memory of Rust: open, high, low, close, volume, trades" in capsys.readouterr().out
