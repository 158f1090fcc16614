"""Columns of Arrow in NumPy. `python quotes.py` says what is copied."""

import numpy as np
from arrow_column import Quotes


def main():
    time = np.arange(6) * 10
    quotes = Quotes(time, np.array([1.5, np.nan, 2.5, 3.5, np.nan, 4.5]))
    prices = np.ma.masked_array(quotes.values("price"), ~quotes.valid("price"))
    print(f"prices {prices}, their mean {prices.mean()}")
    part = quotes.rows(2, 3)
    first, second = quotes.values("time"), quotes.values("time")
    start = first.ctypes.data
    print(f"a column at two looks: {'not copied' if np.shares_memory(first, second) else 'copied'}")
    print(f"rows from 2: {part.values('time')}, {part.values('time').ctypes.data - start} bytes into the same buffer")
    print(f"into Arrow: {'not copied' if np.shares_memory(first, time) else 'copied'}")
    over = Quotes.over(time, np.ones(6))
    print(f"into Arrow by Quotes.over: {'not copied' if np.shares_memory(over.values('time'), time) else 'copied'}")


if __name__ == "__main__":
    main()
