"""Trades become candles in Rust, and these the columns of a DataFrame, where they are. `python market.py`"""

import numpy as np
import pandas as pd
from candles import Candles

MINUTE = 60 * 10**9


def trades(count, seed=1):
    """Times, prices and sizes of a day on which many walked at random."""
    chance = np.random.default_rng(seed)
    start = pd.Timestamp("2026-11-20 09:30").value
    times = start + np.sort(chance.integers(0, 390 * MINUTE, count))
    prices = 100 * np.exp(np.cumsum(chance.normal(0, 1e-4, count)))
    return times, prices, chance.integers(1, 500, count).astype(float)


def table(candles):
    """A column for each field. `copy=False`: pandas keeps the arrays that it is given, which are Rust's memory.

    So they are read-only, as others may look at the candles too: `.copy()` is a table of your own.
    """
    names = ["open", "high", "low", "close", "volume", "trades"]
    index = pd.DatetimeIndex(candles.time.view("datetime64[ns]"), name="time", copy=False)
    return pd.DataFrame({name: getattr(candles, name) for name in names}, index=index, copy=False)


def main():
    candles = Candles(*trades(500_000), 5 * MINUTE)
    frame = table(candles)
    print(frame.head(4).round(2).to_string())
    shared = [name for name in frame if np.shares_memory(frame[name], getattr(candles, name))]
    print(f"{len(frame)} candles of {candles.open.strides[0]} bytes; columns in the memory of Rust: {', '.join(shared)}")
    hours = frame.resample("h").agg({"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"})
    print(hours.round(2).to_string())
    spread = (frame["high"] - frame["low"]).rolling(12).mean().iloc[-1]
    print(f"mean spread of the last hour: {spread:.3f}")
    return frame


if __name__ == "__main__":
    main()
